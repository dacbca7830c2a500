"""Predict, then learn, record by record: any model of River's that has no `advance`, pipelines among them."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any

import numpy as np
from river import base
from river.optim.losses import Squared

from streamkernel.connectors.ports import CausedFault
from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.base.model import Model, advances
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.stream.input_names import InputNames
from streamkernel.daemon.stream.learner import AdvancingLearner, Inputs, Learner
from streamkernel.daemon.stream.quality import log_losses
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.results import finite
from streamkernel.estimators.base import AdvanceResult
from streamkernel.finite import LARGEST, NotFiniteError, clipped, loss_of_number

__all__ = ["RiverLearner", "learner_for"]

_SQUARED = Squared()
_PLAIN = frozenset({str, int, float, bool})


class RiverLearner(Learner):
    """A learner of River's models, which predict and learn record by record, as in River's own loop.

    Parameters
    ----------
    model, learn
        As `Learner` has them.
    names
        The input names that the model may be given, by default 10,000.
    moments
        The targets learned so far, by default none: of a regressor of River's, their deviation is the unit of the loss.

    """

    def __init__(
        self, model: Model, learn: bool = True, names: InputNames | None = None, moments: Moments | None = None
    ) -> None:
        super().__init__(model, learn)
        self._names = names or InputNames()
        self._moments = moments or Moments()
        self._has_probabilities = self.task == "classification"
        # Most classifiers predict the label of the highest probability, ours among them: asking for both would cost the
        # work twice.
        step = self._last_step
        self._has_own_loss = advances(step) and hasattr(step, "loss_of")
        plain = getattr(type(step), "predict_one", None) is base.Classifier.predict_one
        self._predicts_by_itself = not plain and not advances(step)
        self._has_deviations = self.of_numbers and "with_dist" in inspect.signature(step.predict_one).parameters

    @property
    def input_names(self) -> str:
        return self._names.to_text()

    @property
    def target_moments(self) -> Moments:
        return self._moments

    def _advance(self, batch: RecordBatch, xs: Inputs, stopped: Callable[[], bool], catch: bool) -> None:
        batch.n_clipped = self._count_clipped(batch.targets) if self.learn and self.of_numbers else 0
        done: list[tuple[Any, dict[Any, float] | None, float, float]] = []
        for place, (x, y, wanted) in enumerate(
            zip(xs, batch.targets, batch.wanted or repeat(True, len(xs)), strict=True)
        ):
            try:
                done.append(self._advance_one(x, y, wanted, batch))
            except (KeyboardInterrupt, SystemExit, MemoryError, NotFiniteError) as error:
                if not catch or isinstance(error, KeyboardInterrupt):
                    raise
                batch.failure = error
                break
            # River's models raise whatever their arithmetic raises, its compiled parts a panic that is no Exception.
            except BaseException as error:
                batch.refused[place] = CausedFault(
                    "refused", _why(error, x), "type" if isinstance(error, TypeError) else ""
                )
                done.append((None, None, math.nan, math.nan))
            batch.stopped = stopped()
            if batch.stopped or (batch.until_refused and batch.refused):
                break
        result = AdvanceResult(
            [label for label, _, _, _ in done],
            [given or {} for _, given, _, _ in done] if self._has_probabilities else None,
            np.array([loss for _, _, _, loss in done]),
            np.array([deviation for _, _, deviation, _ in done]) if self._has_deviations else None,
        )
        batch.result, batch.n_not_finite = finite(result)

    def _advance_one(
        self, x: Mapping[str, Any], y: Any, wanted: bool, batch: RecordBatch
    ) -> tuple[Any, dict[Any, float] | None, float, float]:
        """Predict a record, then learn it; return its label, probabilities, deviation and loss."""
        label, given, deviation, loss = None, None, math.nan, math.nan
        learns = self.learn and y is not None
        if not self._names.knows(x):
            x, n_ignored = self._names.bound(x, learns)
            batch.n_ignored_inputs += n_ignored if learns else 0
        start = time.perf_counter()
        if wanted:
            label, given, deviation = self._predict(x)
        predicted = time.perf_counter()
        if learns:
            target = clipped(y) if self.of_numbers and abs(y) > LARGEST else y
            moments = self._moments.after(target) if self.of_numbers else self._moments
            if wanted:
                loss = self._loss(target, label, given, moments.deviation)
            if self.task == "novelty":
                self._call.learn_one(x)
            else:
                self._call.learn_one(x, target)
            self._moments = moments
            if batch.learn_seconds is None:  # one record a batch is timed: an observation costs half a microsecond
                batch.learn_seconds = time.perf_counter() - predicted
        if wanted and batch.predict_seconds is None:
            batch.predict_seconds = predicted - start
        return label, given, deviation, loss

    def _predict(self, x: Mapping[str, Any]) -> tuple[Any, dict[Any, float] | None, float]:
        if self.task == "classification":
            return *self._classify(x), math.nan
        if self.task == "novelty":
            return float(self._call.score_one(x)), None, math.nan
        if self._has_deviations:
            # Now, not above: it brings scipy.stats, which no daemon should wait for whose model gives no distribution.
            from river import proba

            found = self._call.predict_one(x, with_dist=True)
            if isinstance(found, proba.Gaussian):
                # Where rounding made the variance negative, its root is complex.
                return float(found.mu), None, found.sigma if isinstance(found.sigma, float) else math.nan
            self._has_deviations = False
        value = self._call.predict_one(x)
        return None if value is None else float(value), None, math.nan

    def _classify(self, x: Mapping[str, Any]) -> tuple[Any, dict[Any, float] | None]:
        given = None
        if self._has_probabilities:
            try:
                given = dict(self._call.predict_proba_one(x))  # a copy: the model may continue to count in its own
                # What is no number or label raises here, where it is borne, and not when its line is written.
                float(sum(given.values()))
                if not (_PLAIN.issuperset(map(type, given)) and _PLAIN.issuperset(map(type, given.values()))):
                    for one in (*given, *given.values()):
                        _label(one)
            except NotImplementedError:
                self._has_probabilities = False
        if given is None or self._predicts_by_itself:
            return _label(self._call.predict_one(x)), given
        return max(given, key=lambda label: given[label]) if given else None, given

    def loss(self, y: Any, prediction: Prediction, deviation: float) -> float:
        if prediction.label is None:
            return math.nan
        return self._loss(y, prediction.label, prediction.probabilities, deviation)

    def _loss(self, y: Any, label: Any, given: Mapping[Any, float] | None, unit: float) -> float:
        """The loss of a prediction; of a number in a unit, which is 0 before two targets differ."""
        if self.of_numbers:
            if label is None or not math.isfinite(label):
                return math.nan
            if unit == 0:
                return 0.0
            if self._has_own_loss:
                return float(self._last_step.loss_of(float(y), label, unit))
            return loss_of_number(_SQUARED, float(y), label, unit)
        if self.task in ("novelty", "density_ratio"):
            return math.nan if label is None else float(self._last_step.loss_of(y, label))
        if self._has_own_loss and given is not None:
            return float(self._last_step.loss_of(y, given))
        if given is None:
            return float(label != y)
        return float(log_losses([y], [given])[0])


def _why(error: BaseException, x: Mapping[str, Any]) -> str:
    """Return why a model refuses a record, and what to do where that is for an input that the record lacks."""
    text = f"{type(error).__name__}: {error}"
    name = error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else None
    if not isinstance(name, str) or name in x:
        return text
    return (
        f"{text:.200}: a step of the model needs this input, and the record lacks it or has an empty cell. Fill the "
        "cell, or use river.compose.Discard with the columns to leave out: Select needs every column"
    )


def _label(found: Any) -> Any:
    """Return what a model predicted, which may be anything, where it has a place in a line and in a metric."""
    if found is None or isinstance(found, str | int | float | np.generic):
        return found
    raise TypeError(f"the model predicted {found!r:.40}, which is not a label")


def learner_for(
    model: Model, learn: bool = True, names: InputNames | None = None, moments: Moments | None = None
) -> Learner:
    """Return the learner that takes a model through a stream the fastest.

    Parameters
    ----------
    model, learn
        As `Learner` has them.
    names
        The names that a model of River's may be given, by default 10,000; an estimator of ours bounds them itself.
    moments
        The targets that a model of River's has learned, by default none; an estimator of ours has its own.

    Examples
    --------
    >>> from river import linear_model
    >>> batch = RecordBatch(inputs=[{"a": 1.0}] * 3, targets=[2.0, 4.0, 2.0])
    >>> result = learner_for(linear_model.LinearRegression()).advance(batch).result
    >>> result.predictions, result.losses.round(2)
    ([0.0, 0.08, 0.2368], array([ 0.  , 15.37,  3.5 ]))

    """
    return AdvancingLearner(model, learn) if advances(model) else RiverLearner(model, learn, names, moments)
