"""Kernel regression: ridge, robust, support vector, absolute and quantile machines."""

from river import base
from river.optim.base import Scheduler
from river.optim.losses import RegressionLoss, Squared

from streamkernel.estimators.growing import KernelMachine
from streamkernel.estimators.number_predictor import NumberPredictor
from streamkernel.growth import Growth
from streamkernel.kernels import Kernel
from streamkernel.records.numbers import Numbers


class KernelRegressor(KernelMachine, NumberPredictor, base.MiniBatchRegressor):
    """A kernel regressor that grows with its stream.

    It works like `KernelClassifier`, for numbers: a mixture by default, and the papers' machine if you give one of its
    arguments. It standardizes targets internally by their running mean and deviation. Lengths in a loss (Huber's and
    the tube's epsilon) are in units of that deviation.

    Parameters
    ----------
    kernel
        The kernel of the papers' machine. None (the default) is `Gaussian()` with a bandwidth from the first 200
        records. The mixture has Gaussian kernels of several bandwidths, on one, two or all inputs.
    loss
        None (the default) is River's `Squared`. River's `Huber(epsilon=1)` gives a robust regression, and its
        `Absolute` a median regression. `EpsilonInsensitive` gives support vector regression, and `Quantile` a quantile
        regression.
    growth
        `DSG()`, `UDSG()` or `CDSG()`. None (the default) is `CDSG()`, if another argument asks for the papers' machine.
    block_size
        F, the features of a block, at most 2^24. None (the default) is 64 with `precondition`, and 32 without it or if
        `max_features` is smaller.
    batch_size
        B, the labeled records of a step, at most 2^24. Defaults to 32.
    max_features
        The largest number of features, at least `block_size` or 32. A feature is one frequency. None is no limit: the
        cost of a record then grows with the stream. Defaults to 4,096.
    step
        A River schedule of step sizes. With `precondition`, None (the default) is gamma_0 / (1 + t / 500), with gamma_0
        = .049 sqrt(B), at most .7 (.3 for a loss without a bounded derivative). Without it, None is gamma_0 / (1 + t /
        200), with gamma_0 from the first mini-batch.
    regularization
        nu, the regularization, at least 0. Defaults to 1e-6.
    standardize
        Whether to center and scale numbers by running moments. None (the default) follows the kernel.
    max_inputs
        The largest number of inputs. The model ignores and counts all others. Defaults to 10,000.
    cache_bytes
        The largest size of the cache for drawn frequencies of the papers' machine, in bytes. It affects only speed.
        Defaults to 64 MB.
    dtype
        "float32" (the default) or "float64".
    seed
        The seed of the random features. None (the default) draws one.
    precondition
        Whether a step solves a ridge regression on the features of its block and its mini-batch, instead of following
        the gradient. Step sizes are then shares of that solution. None (the default) is True if `step` is None and the
        loss has a Lipschitz derivative (not hinge, absolute, quantile and tube), else False. If `block_size`,
        `precondition` or `blocks_per_step` is None, a loaded state keeps its value.
    blocks_per_step
        The blocks that a mini-batch updates one after the other, at most 1,024. Each fits the residuals of the previous
        ones. None (the default) is 2 with `precondition` and 1 without it.
    average
        Whether to predict with the mean of the solutions after each step, instead of the last one. Defaults to False.

    Raises
    ------
    ValueError
        An argument is out of range, or the loss is not supported.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamkernel import KernelRegressor
    >>> model = KernelRegressor(seed=1)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> error.get() < 0.3
    True

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, sections 3 and 4.
    [^2]: Li and Poczos, "Utilize old coordinates: faster doubly stochastic gradients for kernel methods".

    """

    _mixes = True

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
        self._machine = self._build(self._targets)
