"""What the batch estimators of least squares have in common: the batch step, and what a user would plot of them."""

from collections.abc import Sequence
from typing import Any

from streamkernel.batch.least_squares import learn_least_squares_batch
from streamkernel.batch.least_squares_machine import LeastSquaresMachine
from streamkernel.batch.rows import BatchRows, ScoredBatch
from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.batch_step import step_here
from streamkernel.estimators.head_arguments import HeadArguments
from streamkernel.records.classes import Classes
from streamkernel.records.numbers import Numbers


class LeastSquaresEstimator(HeadArguments):
    """Least squares heads and linear experts that learn from sums over records, behind River's interface."""

    _machine: LeastSquaresMachine

    def _build(self, targets: Classes | Numbers) -> LeastSquaresMachine:
        """A fresh machine from the constructor's arguments."""
        inputs, columns = self._checked_heads()
        return LeastSquaresMachine(inputs, targets, columns, float(self.ridge), self.drift_rates)

    def batch_step(self, X: Any, y: Any, w: Sequence[float] | None = None) -> AdvanceResult:
        """Predict the rows of a data frame or array, then learn all that are labelled by one update of rank n.

        The order of the rows changes nothing but rounding. What depends on an order where records come one by one, the
        moments of inputs and targets, is taken from a sample of at most 2,048 rows, those with the smallest hashes.
        Rows are scaled by the moments before the batch, those of the first one by its own; new columns and labels are
        added in the order of their keys. The coefficients drift once, by as much as n records one by one would; the
        experts are weighed, and their temperatures chosen, by the mean losses of the batch, as if n records had had
        these; after the first batch, by what one half of its sample teaches about the other. A batch of one row is what
        `learn_one` does.

        Parameters
        ----------
        X
            Any eager data frame that narwhals knows (pandas, polars, pyarrow), or an array, of shape (n, d), as for
            `learn_many`.
        y
            n targets; None, null or missing is predicted only.
        w
            n weights. All 1 by default.

        Returns
        -------
        The predictions of all rows, each made before the step, and the losses they had.

        Raises
        ------
        ValueError
            A row cannot be used. Nothing of the batch is learnt then.
        TypeError
            X or y is no frame, series, array or list.

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
        """Steps so far: batches, and labelled records that came one by one."""
        return self._machine.n_steps

    @property
    def last_batch_size(self) -> int:
        """The labelled records of the last step; 0 before the first."""
        return self._machine.last_batch_size

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first record."""
        return self._machine.columns.bandwidth

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each expert in the prediction, by name; empty before the first labelled record."""
        experts = self._machine.experts
        return dict(zip(experts.names, experts.weights.tolist(), strict=True)) if self.n_records else {}

    @property
    def memory_bytes(self) -> int:
        """Bytes of the experts' matrices."""
        return self._machine.experts.nbytes
