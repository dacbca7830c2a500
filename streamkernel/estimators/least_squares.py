"""The common part of the least-squares estimators: the batch step and the attributes to plot."""

from collections.abc import Sequence
from typing import Any

from streamkernel.batch.least_squares import LeastSquaresMachine, learn_least_squares_batch
from streamkernel.batch.rows import BatchRows, ScoredBatch, step_here
from streamkernel.estimators.arguments import head_columns
from streamkernel.estimators.base import AdvanceResult, StreamEstimator
from streamkernel.records.classes import Classes
from streamkernel.records.targets import Numbers


class LeastSquaresEstimator(StreamEstimator):
    """The common part of the least-squares estimators, which learn from sums over records."""

    ridge: float
    drift_rates: tuple[float, ...]
    _machine: LeastSquaresMachine

    def _build(self, targets: Classes | Numbers) -> LeastSquaresMachine:
        """A fresh machine from the constructor's arguments."""
        inputs, columns = head_columns(self)
        return LeastSquaresMachine(inputs, targets, columns, float(self.ridge), self.drift_rates)

    def batch_step(self, X: Any, y: Any, w: Sequence[float] | None = None) -> AdvanceResult:
        """Predict the rows of a data frame or array, then learn all labeled rows by one update of rank n.

        The order of the rows changes only rounding. A sample of at most 2,048 rows, those with the smallest hashes,
        determines the moments of inputs and targets. The moments before the batch scale its rows, and the first batch
        uses its own. New columns and labels join in the order of their keys.

        The coefficients drift once, as much as for n single records. The mean losses of the batch set the weights of
        the experts and their temperatures, as if n records had these losses. After the first batch, experts that
        learned one half of its sample are judged by the other half. A batch of one row does the same as `learn_one`.

        Parameters
        ----------
        X, y, w
            As in `KernelClassifier.batch_step`.

        Returns
        -------
        The predictions of all rows, each made before the step, and their losses.

        Raises
        ------
        ValueError, TypeError
            A row, X or y is unusable. The batch is then not learned.

        Examples
        --------
        >>> import numpy as np
        >>> from streamkernel import KernelLeastSquaresRegressor
        >>> X = np.random.default_rng(1).normal(size=(4000, 2))
        >>> y = np.sin(X[:, 0]) * X[:, 1]
        >>> model = KernelLeastSquaresRegressor(seed=1)
        >>> first, second = (model.batch_step(X[:2000], y[:2000]), model.batch_step(X[2000:], y[2000:]))
        >>> bool(second.losses.mean() < first.losses.mean() / 5), model.n_steps, model.last_batch_size
        (True, 2, 2000)

        """
        with self._lock:
            return self._outcome(step_here(self, X, y, w))

    def _learn_batch(self, batch: BatchRows) -> ScoredBatch:
        return learn_least_squares_batch(self._machine, batch)

    @property
    def n_steps(self) -> int:
        """The number of steps so far: batches, and labeled records that came one by one."""
        return self._machine.n_steps

    @property
    def last_batch_size(self) -> int:
        """The number of labeled records in the last step; 0 before the first."""
        return self._machine.last_batch_size

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first record."""
        return self._machine.columns.bandwidth

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each expert in the prediction, by name. Empty before the first labeled record."""
        experts = self._machine.experts
        return dict(zip(experts.names, experts.weights.tolist(), strict=True)) if self.n_records else {}

    @property
    def memory_bytes(self) -> int:
        """Bytes of the experts' matrices."""
        return self._machine.experts.nbytes
