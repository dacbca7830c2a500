"""What regressors have in common whose machine predicts standardised numbers: River's interface to these."""

import abc
from typing import Any

from streamkernel.batch.rows import BatchRows, ScoredBatch
from streamkernel.estimators.base import AdvanceResult, StreamEstimator
from streamkernel.estimators.explanation import NumberExplainer
from streamkernel.finite import loss_of_number
from streamkernel.records.batches import Records
from streamkernel.records.frames import Frame
from streamkernel.records.numbers import Numbers, plain_number
from streamkernel.records.results import BatchResult
from streamkernel.state import Array


class NumberPredictor(StreamEstimator, NumberExplainer):
    """The predictions of a regressor, in the units of its targets."""

    _machine: Any
    _targets: Numbers

    @abc.abstractmethod
    def _learn_batch(self, batch: BatchRows) -> ScoredBatch:
        """Have the machine take a step on the rows of a batch."""

    @property
    def n_clipped_targets(self) -> int:
        """Targets past +-1e100, which count as that: the squares of larger ones would overflow."""
        return self._targets.n_limited

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The target of one record; 0 before the first."""
        lock = self._lock
        lock.acquire()
        try:
            return float(self._targets.numbers(self._machine.predict_one(x))[0])
        finally:
            lock.release()

    def predict_many(self, X: Any) -> Any:
        """The targets of the rows of a data frame or array, equal to `predict_one` to rounding.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A series of n numbers in the frame's backend, with its index; for an array, one of shape (n,).

        """
        frame = Frame(X)
        with self._lock:
            return frame.series(self._predicted_numbers(frame))

    def loss_of(self, y: float, prediction: float, unit: float | None = None) -> float:
        """Compute the model's own loss of a prediction made before its target was known.

        It is no `loss`: that is the constructor's argument of the growing regressor.

        Parameters
        ----------
        y
            The target that came.
        prediction
            What `predict_one` gave.
        unit
            What both are divided by, as in learning. None (the default) is the deviation of the targets learnt so far.

        Raises
        ------
        ValueError
            The target is none that `learn_one` takes.

        Examples
        --------
        >>> from streamkernel import KernelRegressor
        >>> model = KernelRegressor(seed=1)
        >>> model.loss_of(3.0, 1.0), model.loss_of(3.0, 1.0, unit=2.0)
        (4.0, 1.0)

        """
        unit = self._targets.deviation if unit is None else unit
        return loss_of_number(self._targets.loss, plain_number(y), prediction, unit)

    def _predicted_numbers(self, xs: Records) -> Array:
        return self._targets.numbers(self._machine.predict(xs))

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        return AdvanceResult(self._targets.values(batch.targets, batch.predictions), None, batch.losses)
