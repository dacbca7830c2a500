"""Kernel regression of several targets at once."""

from typing import Any

from river import base
from river.optim.base import Scheduler
from river.optim.losses import RegressionLoss, Squared

from streamkernel.estimators.arguments import require_component
from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.growing import SeveralLearner
from streamkernel.growth import Growth
from streamkernel.kernels import Kernel
from streamkernel.records.frames import Frame
from streamkernel.records.results import BatchResult
from streamkernel.records.several import SeveralNumbers


class KernelMultiTargetRegressor(SeveralLearner, base.MultiTargetRegressor):  # type: ignore[misc] # it has a weight
    """A kernel regressor of several targets that grows with its stream.

    It is one `KernelRegressor` with an output for each target: a mixture by default, and the papers' machine if you
    give one of its arguments. The features of a record are computed once, and a step moves the coefficients of all
    targets. Each target is standardized by its own running mean and deviation.

    The targets of a record are a dict. A new name adds an output, at most `max_targets`. A target that is None or
    absent has no gradient, and the record's others are learned.

    Parameters
    ----------
    loss
        The loss of each target. None (the default) is River's `Squared`. River's `Huber` and `Absolute`,
        `EpsilonInsensitive` and `Quantile` are possible, too.
    max_targets
        The largest number of targets. The model ignores the values of all others, and counts them. Defaults to 1,000.
    kernel, growth, block_size, batch_size, max_features, step, regularization, standardize
        As in `KernelClassifier`.
    max_inputs, cache_bytes, dtype, seed, precondition, blocks_per_step, average
        As in `KernelClassifier`.

    Examples
    --------
    >>> import random
    >>> from streamkernel import KernelMultiTargetRegressor
    >>> model, rng = KernelMultiTargetRegressor(seed=1), random.Random(1)
    >>> for _ in range(2000):
    ...     x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}
    ...     model.learn_one(x, {"sum": x["a"] + x["b"], "product": x["a"] * x["b"]})
    >>> {name: round(number) for name, number in model.predict_one({"a": 1.0, "b": 1.0}).items()}
    {'sum': 2, 'product': 1}

    """

    loss: RegressionLoss | None
    _targets: SeveralNumbers

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
        max_targets: int = 1_000,
        cache_bytes: int = 2**26,
        dtype: str = "float32",
        seed: int | None = None,
        precondition: bool | None = None,
        blocks_per_step: int | None = None,
        average: bool = False,
    ) -> None:
        self._keep(locals())
        require_component("loss", loss, RegressionLoss)
        self._targets = SeveralNumbers(loss or Squared(), max_targets)
        self._machine = self._build(self._targets)

    @property
    def targets(self) -> list[Any]:
        """The names of the targets seen so far, in the order of their outputs."""
        return list(self._targets.names)

    @property
    def n_ignored_targets(self) -> int:
        """The number of target values ignored because of `max_targets`."""
        return self._targets.n_limited

    def predict_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Predict each target seen so far, for one record; empty before the first."""
        with self._lock:
            numbers = self._targets.numbers(self._machine.predict_one(x))[0].tolist()
            return dict(zip(self._targets.names, numbers, strict=True))

    def predict_many(self, X: Any) -> Any:
        """Predict the targets of the rows of a data frame or array, equal to `predict_one` except for rounding.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A frame of shape (n, K) in the frame's backend, with its index and a column for each target. For an array, an
        array of that shape.

        """
        frame = Frame(X)
        with self._lock:
            return frame.table(self._targets.names, self._targets.numbers(self._machine.predict(frame)))

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        return AdvanceResult(self._targets.values(batch.targets, batch.predictions), None, batch.losses)
