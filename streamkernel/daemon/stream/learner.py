"""Predict, then learn: a chunk of events through a model, by its fastest way that changes no bit of the result."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.connectors.ports import Label
from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.base.model import OF_EACH, Model, has_own_parts, last_step, task_of
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.stream.learned import Learned
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
        xs: Inputs,
        ys: Targets,
        stopped: Callable[[], bool] = lambda: False,
        *,
        predict: Sequence[bool] | None = None,
        until_refused: bool = False,
        catch: bool = False,
    ) -> Learned:
        """Predict, then learn, each event in turn.

        Parameters
        ----------
        xs
            Inputs.
        ys
            Targets; None: unlabeled, predicted only.
        stopped
            Asked between events that take long: True ends the chunk there.
        predict
            Whether the prediction of each is wanted; by default, of all. The others are learned, and what the result
            has in their place means nothing.
        until_refused
            Whether the chunk ends with the first event that is refused.
        catch
            Whether what an event raises is kept in `failure`, after the predictions of the events before it. By
            default it is raised, and these are lost.

        """
        before = self._n_ignored_labels
        learned = self._advance(xs, ys, stopped, predict, until_refused, catch)
        learned.n_ignored = self._n_ignored_labels - before
        return learned

    @abstractmethod
    def _advance(
        self,
        xs: Inputs,
        ys: Targets,
        stopped: Callable[[], bool],
        predict: Sequence[bool] | None,
        until_refused: bool,
        catch: bool,
    ) -> Learned: ...

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
        return sum([y is not None and abs(y) > LARGEST for y in ys]) if self.of_numbers else 0  # type: ignore[arg-type]


class AdvancingLearner(Learner):
    """A learner of estimators with `advance`, as ours are: whole chunks at once; how they are cut changes nothing."""

    def __init__(self, model: Model, learn: bool = True) -> None:
        super().__init__(model, learn)
        self._has_own_parts = has_own_parts(model)

    def _advance(
        self,
        xs: Inputs,
        ys: Targets,
        stopped: Callable[[], bool],
        predict: Sequence[bool] | None,  # noqa: ARG002 - the prediction comes with the learning
        until_refused: bool,
        catch: bool,
    ) -> Learned:
        if not xs:
            return Learned()
        targets = ys if self.learn else [None] * len(xs)
        n_clipped = self._count_clipped(targets)
        # What a class of the user's raises comes in the middle of a chunk, part of which is learned by then.
        before = self._call.__getstate__() if len(xs) > 1 and self._has_own_parts else None
        start = time.perf_counter()
        try:
            result = self._call.advance(xs, targets)
        except (Exception, SystemExit) as error:
            if not isinstance(error, ValueError):
                if not catch:
                    raise
                if before is None:
                    return Learned(failure=error)
            if len(xs) == 1:
                nothing = AdvanceResult([None], None, np.full(1, math.nan))
                return Learned(result=nothing, refused={0: ("refused", str(error))})
            if before is not None:
                self._call.__setstate__(before)
            return self._one_by_one(xs, ys, stopped, until_refused, catch)
        seconds = (time.perf_counter() - start) / len(xs)
        learned = Learned(
            result=result,
            predict_seconds=None if self.learn else seconds,
            learn_seconds=seconds if self.learn else None,
            n_clipped=n_clipped,
        )
        learned.drop_not_finite()
        return learned

    def _one_by_one(
        self, xs: Inputs, ys: Targets, stopped: Callable[[], bool], until_refused: bool, catch: bool
    ) -> Learned:
        """Find the event the chunk was refused for, or raised at; nothing is taken twice: none of it is learned yet."""
        whole = Learned()
        parts: list[AdvanceResult] = []
        for place, (x, y) in enumerate(zip(xs, ys, strict=True)):
            one = self._advance([x], [y], stopped, None, until_refused, catch)
            whole.failure = one.failure
            if one.failure is not None:
                break
            parts.append(one.result)
            whole.add(one)
            if one.refused:
                whole.refused[place] = one.refused[0]
            whole.stopped = stopped()
            if whole.stopped or (until_refused and whole.refused):
                break
        whole.predict_seconds = whole.learn_seconds = None  # a single record is no measure of a chunk
        whole.result = _joined(parts, self.task in ("classification", "several_labels"))
        return whole

    def loss(self, y: Any, prediction: Prediction, deviation: float) -> float:
        if prediction.label is None:
            return math.nan
        if self.of_numbers and deviation == 0:  # before two targets differ
            return 0.0
        if prediction.probabilities is None:
            return float(self._call.loss_of(y, prediction.label, deviation))
        return float(self._call.loss_of(y, prediction.probabilities))


def _joined(parts: Sequence[AdvanceResult], classifies: bool) -> AdvanceResult:
    """Join results of one record each; one that was refused has neither probabilities nor a deviation."""
    deviations = None
    if any(part.deviations is not None for part in parts):
        deviations = np.array([math.nan if part.deviations is None else part.deviations[0] for part in parts])
    return AdvanceResult(
        [part.predictions[0] for part in parts],
        [part.probabilities[0] if part.probabilities else {} for part in parts] if classifies else None,
        np.array([part.losses[0] for part in parts]),
        deviations,
    )
