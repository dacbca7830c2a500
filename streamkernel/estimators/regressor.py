"""Kernel regression: ridge, robust, support vector, absolute and quantile machines."""

from river import base
from river.optim.base import Scheduler
from river.optim.losses import RegressionLoss, Squared

from streamkernel.estimators.arguments import require_component
from streamkernel.estimators.growing import KernelMachine
from streamkernel.estimators.predictors import NumberPredictor
from streamkernel.growth import Growth
from streamkernel.kernels import Kernel
from streamkernel.records.targets import Numbers


class KernelRegressor(KernelMachine, NumberPredictor, base.MiniBatchRegressor):
    """A kernel regressor that grows with its stream.

    It works like `KernelClassifier`, for numbers: a mixture by default, and the papers' machine if you give one of its
    arguments. It standardizes targets internally by their running mean and deviation. Lengths in a loss (Huber's and
    the tube's epsilon) are in units of that deviation.

    Parameters
    ----------
    loss
        None (the default) is River's `Squared`. River's `Huber(epsilon=1)` gives a robust regression, and its
        `Absolute` a median regression. `EpsilonInsensitive` gives support vector regression, and `Quantile` a quantile
        regression.
    kernel, growth, block_size, batch_size, max_features, step, regularization, standardize
        As in `KernelClassifier`.
    max_inputs, cache_bytes, dtype, seed, precondition, blocks_per_step, average
        As in `KernelClassifier`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamkernel import KernelRegressor
    >>> model = KernelRegressor(seed=1)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> error.get() < 0.3
    True

    """

    loss: RegressionLoss | None
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
        self._keep(locals())
        require_component("loss", loss, RegressionLoss)
        self._targets = Numbers(loss or Squared())
        self._machine = self._build(self._targets)
