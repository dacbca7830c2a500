"""Kernel regression: ridge, robust, support vector, absolute and quantile machines."""

from river import base
from river.optim.base import Scheduler
from river.optim.losses import RegressionLoss, Squared

from streamkernel.estimators.growing import KernelMachine
from streamkernel.estimators.number_predictor import NumberPredictor
from streamkernel.growth import Growth
from streamkernel.growth.machine import Machine
from streamkernel.kernels import Kernel
from streamkernel.records.numbers import Numbers


class KernelRegressor(KernelMachine, NumberPredictor, base.MiniBatchRegressor):
    """A kernel regressor that grows with its stream.

    As `KernelClassifier`, for numbers. Targets are standardised inside by their running mean and deviation, so the
    lengths in a loss (Huber's and the tube's epsilon) are in units of that deviation.

    Parameters
    ----------
    kernel
        The kernel. None (the default) is `Gaussian()`, whose bandwidth is taken from the first 200 records.
    loss
        None (the default) is River's `Squared`. River's `Huber(epsilon=1)` and `Absolute`, and our
        `EpsilonInsensitive` and `Quantile`, make it robust, a support vector, a median or a quantile regression.
    growth
        `DSG()`, `UDSG()` or `CDSG()`. None (the default) is `CDSG()`.
    block_size
        F, features of a block, at most 2^24. None (the default) is 64 with `precondition`, and 32 without or where
        `max_features` is less.
    batch_size
        B, labelled records of a step, at most 2^24. Defaults to 32.
    max_features
        The most features, at least `block_size` or 32; None is the paper's unbounded machine. Defaults to 4,096. A
        feature is one frequency.
    step
        A River schedule of step sizes. None (the default) is, with `precondition`, gamma_0 / (1 + t / 500) with
        gamma_0 = .035 sqrt(B), at most .7 (.3 of a loss without a bounded derivative); without, gamma_0 / (1 + t / 200)
        with a gamma_0 taken from the first mini-batch.
    regularization
        nu, at least 0. Defaults to 1e-6.
    standardize
        Whether numbers are centred and scaled by running moments. None (the default) is what the kernel asks for.
    max_inputs
        Inputs past this number are ignored and counted. Defaults to 10,000.
    cache_bytes
        Drawn frequencies kept, in bytes; changes speed only. Defaults to 64 MB.
    dtype
        "float32" (the default) or "float64".
    seed
        The stream of random features. None (the default) draws one.
    precondition
        Whether a step solves a ridge regression on its block's features and its mini-batch, instead of following the
        gradient; step sizes are then shares of that solution. None (the default) is True where `step` is None and the
        loss has a Lipschitz derivative (not hinge, absolute, quantile and tube), else False. A state goes on with the
        `block_size`, `precondition` and `blocks_per_step` that it was learnt with where these are None.
    blocks_per_step
        Blocks that a mini-batch updates one after the other, each fitted to what those before left, at most 1,024. None
        (the default) is 2 with `precondition` and 1 without.
    average
        Whether predictions are those of the mean of the solutions after each step, instead of the last. Defaults to
        False.

    Raises
    ------
    ValueError
        An argument is out of its range, or the loss is one that cannot be used.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamkernel import KernelRegressor
    >>> model = KernelRegressor(seed=1)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> error.get() < 0.8
    True

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, sections 3 and 4.
    [^2]: Li and Poczos, "Utilize old coordinates: faster doubly stochastic gradients for kernel methods".

    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        loss: RegressionLoss | None = None,
        growth: Growth | None = None,
        block_size: int | None = None,
        batch_size: int = 32,
        max_features: int | None = 4096,
        step: Scheduler | None = None,
        regularization: float = 1e-6,
        standardize: bool | None = None,
        max_inputs: int = 10_000,
        cache_bytes: int = 2**26,
        dtype: str = "float32",
        seed: int | None = None,
        precondition: bool | None = None,
        blocks_per_step: int | None = None,
        average: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.growth = growth
        self.block_size = block_size
        self.batch_size = batch_size
        self.max_features = max_features
        self.step = step
        self.regularization = regularization
        self.standardize = standardize
        self.max_inputs = max_inputs
        self.cache_bytes = cache_bytes
        self.dtype = dtype
        self.seed = seed
        self.precondition = precondition
        self.blocks_per_step = blocks_per_step
        self.average = average
        self._check("loss", loss, RegressionLoss)
        self._targets = Numbers(loss or Squared())
        self._machine: Machine = self._build(self._targets)
