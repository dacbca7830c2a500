"""Kernel classification of records that have several labels at once."""

from typing import Any

from river import base
from river.optim.base import Scheduler
from river.optim.losses import BinaryLoss

from streamkernel.estimators.arguments import require_component
from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.growing import SeveralLearner
from streamkernel.growth import Growth
from streamkernel.kernels import Kernel
from streamkernel.losses import Log
from streamkernel.records.frames import Frame
from streamkernel.records.results import BatchResult
from streamkernel.records.several import SeveralLabels


class KernelMultiLabelClassifier(SeveralLearner, base.MultiLabelClassifier):
    """A kernel classifier of several labels that grows with its stream.

    Each label is true or false, whatever the others are. It is one machine with an output for each label: a mixture by
    default, and the papers' machine if you give one of its arguments. The features of a record are computed once, and a
    step moves the coefficients of all labels.

    The labels of a record are a dict of booleans. A new name adds an output, at most `max_labels`. A label that is None
    or absent has no gradient, and the record's others are learned.

    Parameters
    ----------
    loss
        The loss of each label. None (the default) is `Log`, the logistic loss. River's `Hinge` and `SquaredHinge` are
        possible, too.
    max_labels
        The largest number of labels. The model ignores all others, and counts them. Defaults to 1,000.
    kernel, growth, block_size, batch_size, max_features, step, regularization, standardize
        As in `KernelClassifier`.
    max_inputs, cache_bytes, dtype, seed, precondition, blocks_per_step, average
        As in `KernelClassifier`.

    Examples
    --------
    >>> import random
    >>> from streamkernel import KernelMultiLabelClassifier
    >>> model, rng = KernelMultiLabelClassifier(seed=1), random.Random(1)
    >>> for _ in range(2000):
    ...     x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}
    ...     model.learn_one(x, {"right": x["a"] > 0, "far": x["a"] ** 2 + x["b"] ** 2 > 2})
    >>> model.predict_one({"a": 0.5, "b": 0.0}), model.predict_one({"a": -1.5, "b": 1.5})
    ({'right': True, 'far': False}, {'right': False, 'far': True})

    """

    loss: BinaryLoss | None
    _targets: SeveralLabels

    _mixes = True

    def __init__(
        self,
        kernel: Kernel | None = None,
        loss: BinaryLoss | None = None,
        growth: Growth | None = None,
        block_size: int | None = None,
        batch_size: int = 32,
        max_features: int | None = 4096,
        step: Scheduler | None = None,
        regularization: float = 1e-6,
        standardize: bool | None = None,
        max_inputs: int = 10_000,
        max_labels: int = 1_000,
        cache_bytes: int = 2**26,
        dtype: str = "float32",
        seed: int | None = None,
        precondition: bool | None = None,
        blocks_per_step: int | None = None,
        average: bool = False,
    ) -> None:
        self._keep(locals())
        require_component("loss", loss, BinaryLoss)
        self._targets = SeveralLabels(loss or Log(), max_labels)
        self._machine = self._build(self._targets)

    @property
    def labels(self) -> list[Any]:
        """The labels seen so far, in the order of their outputs."""
        return list(self._targets.names)

    @property
    def n_ignored_labels(self) -> int:
        """The number of label values ignored because of `max_labels`."""
        return self._targets.n_limited

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, dict[bool, float]]:
        """Predict the probability of False and True for each label seen so far, for one record."""
        with self._lock:
            return self._targets.distribution(self._machine.predict_one(x)[0])

    def predict_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, bool]:
        """Predict for each label seen so far whether it is true, for one record."""
        return chosen(self.predict_proba_one(x))

    def predict_proba_many(self, X: Any) -> Any:
        """Predict the probability that each label is true, for the rows of a data frame or array.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A frame of shape (n, K) in the frame's backend, with its index and a column for each label. For an array, an
        array of that shape.

        """
        frame = Frame(X)
        with self._lock:
            return frame.table(self._targets.names, self._targets.positive(self._machine.predict(frame)))

    def predict_many(self, X: Any) -> Any:
        """Predict whether each label is true, for the rows of a data frame or array.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A frame of n rows of booleans in the frame's backend, with its index and a column for each label. For an array,
        an array of shape (n, K).

        """
        frame = Frame(X)
        with self._lock:
            return frame.table(self._targets.names, self._targets.positive(self._machine.predict(frame)) > 0.5)

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        probabilities = self._targets.probabilities(batch.targets, batch.predictions)
        return AdvanceResult([*map(chosen, probabilities)], probabilities, batch.losses)


def chosen(probabilities: dict[Any, dict[bool, float]]) -> dict[Any, bool]:
    """Return whether each label is more likely true than false."""
    return {label: p[True] > p[False] for label, p in probabilities.items()}
