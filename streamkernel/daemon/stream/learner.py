"""Predict, then learn: a chunk of events through a model, by its fastest way that changes no bit of the result."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.connectors.ports import Fault, Label
from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.base.model import OF_EACH, Model, has_own_parts, last_step, task_of
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.results import finite, joined
from streamkernel.estimators.base import AdvanceResult
from streamkernel.finite import LARGEST

__all__ = ["AdvancingLearner", "Learner"]

Inputs = Sequence[Mapping[str, Any]]
Targets = Sequence[Label | None]


class Learner(ABC):
    """A model that predicts and learns chunks of events.

    Parameters
    ----------
    model
        A River classifier, regressor or pipeline, or a detector of ours.
    learn
        False: the records are predicted, the model stays as it is.

    Attributes
    ----------
    task
        What the model does.
    of_numbers
        Whether the model is a regressor.

    """

    def __init__(self, model: Model, learn: bool = True) -> None:
        self.model = model
        self.learn = learn
        self._call: Any = model  # River's annotations differ from class to class
        self.task = task_of(model)
        self.of_numbers = self.task == "regression"
        self._last_step: Any = last_step(model)

    @property
    def input_names(self) -> str:
        """What a checkpoint keeps of the names the model was given, for a model that does not bound them itself."""
        return ""

    @property
    def target_moments(self) -> Moments:
        """What a checkpoint keeps of the numbers learned, for a model that has no moments of them itself."""
        return Moments()

    def advance(
        self,
        batch: RecordBatch,
        stopped: Callable[[], bool] = lambda: False,
        *,
        catch: bool = False,
    ) -> RecordBatch:
        """Predict, then learn, each row of a batch in turn, and add the results to it.

        Parameters
        ----------
        batch
            The rows to predict and learn.
        stopped
            Asked between rows that take long: True leaves the rows after it.
        catch
            Whether the exception of a row is kept in the batch, after the results of the rows before it. By default it
            is raised, and these are lost.

        Returns
        -------
        batch
            The same batch.

        """
        before = self._n_ignored_labels
        xs = batch.inputs if batch.lags is None else batch.inputs_for(self.model)
        self._advance(batch, xs, stopped, catch)
        batch.n_ignored = self._n_ignored_labels - before
        return batch

    @abstractmethod
    def _advance(self, batch: RecordBatch, xs: Inputs, stopped: Callable[[], bool], catch: bool) -> None: ...

    @abstractmethod
    def loss(self, y: Any, prediction: Prediction, deviation: float) -> float:
        """Compute the loss of an earlier prediction, as `advance` does where the target is there at once.

        That is the own loss of an estimator of ours, alone or at the end of a pipeline; of other models the squared
        error of a number, the log-loss of probabilities, and 1 for a wrong label without.

        Parameters
        ----------
        y
            The target that came since.
        prediction
            The prediction that was made.
        deviation
            The deviation of the targets learned up to this one, the unit in which the losses of numbers count.

        Returns
        -------
        loss
            NaN where there was no prediction, or the label was not known yet.

        """

    @property
    def _n_ignored_labels(self) -> int:
        """Records the model did not learn, for their class came past its limit; 0 where it has none."""
        # Of several labels it counts values, and a record without one is learned.
        return 0 if self.task in OF_EACH else int(getattr(self._last_step, "n_ignored_labels", 0))

    def _count_clipped(self, ys: Targets) -> int:
        """Count the numbers among targets whose squares overflow."""
        return sum([y is not None and abs(y) > LARGEST for y in ys])  # type: ignore[arg-type]


class AdvancingLearner(Learner):
    """A learner of estimators with `advance`, as ours are: whole chunks at once; how they are cut changes nothing."""

    def __init__(self, model: Model, learn: bool = True) -> None:
        super().__init__(model, learn)
        self._has_own_parts = has_own_parts(model)

    def _advance(self, batch: RecordBatch, xs: Inputs, stopped: Callable[[], bool], catch: bool) -> None:
        if not xs:
            return
        targets = batch.targets if self.learn else [None] * len(xs)
        n_clipped = self._count_clipped(targets) if self.of_numbers else 0
        # A class of the user's may raise in the middle of the rows, when some of them are learned.
        before = self._call.__getstate__() if len(xs) > 1 and self._has_own_parts else None
        start = time.perf_counter()
        try:
            result = self._call.advance(xs, targets)
        except (Exception, SystemExit) as error:
            if not isinstance(error, ValueError):
                if not catch:
                    raise
                if before is None:
                    batch.failure = error
                    return
            if len(xs) == 1:
                batch.result = AdvanceResult([None], None, np.full(1, math.nan))
                batch.refused = {0: Fault("refused", str(error))}
                return
            if before is not None:
                self._call.__setstate__(before)
            self._one_by_one(batch, xs, stopped, catch)
            return
        seconds = (time.perf_counter() - start) / len(xs)
        if self.learn:
            batch.learn_seconds = seconds
        else:
            batch.predict_seconds = seconds
        batch.n_clipped = n_clipped
        batch.result, batch.n_not_finite = finite(result)

    def _one_by_one(self, batch: RecordBatch, xs: Inputs, stopped: Callable[[], bool], catch: bool) -> None:
        """Find the row that is refused or raises; nothing is taken twice, because none of the rows is learned yet."""
        parts: list[AdvanceResult] = []
        for place, (x, y) in enumerate(zip(xs, batch.targets, strict=True)):
            one = RecordBatch(inputs=[x], targets=[y])
            self._advance(one, [x], stopped, catch)
            batch.failure = one.failure
            if one.failure is not None:
                break
            parts.append(one.result)
            batch.n_not_finite += one.n_not_finite
            batch.n_clipped += one.n_clipped
            if one.refused:
                batch.refused[place] = one.refused[0]
            batch.stopped = stopped()
            if batch.stopped or (batch.until_refused and batch.refused):
                break
        batch.result = joined(parts, self.task in ("classification", "several_labels"))

    def loss(self, y: Any, prediction: Prediction, deviation: float) -> float:
        if prediction.label is None:
            return math.nan
        if self.of_numbers and deviation == 0:  # before two targets differ
            return 0.0
        if prediction.probabilities is None:
            return float(self._call.loss_of(y, prediction.label, deviation))
        return float(self._call.loss_of(y, prediction.probabilities))
