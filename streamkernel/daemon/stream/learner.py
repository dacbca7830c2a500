"""Test, then train: one chunk of records through a model, by its fastest way that changes no bit of the result."""

from __future__ import annotations

import inspect
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, repeat
from typing import Any, NamedTuple

import numpy as np
from river import base, proba
from river.optim.losses import BinaryLoss, Squared

from streamkernel.daemon.settings.build import Model, last_step, task_of
from streamkernel.daemon.stream.quality import log_losses
from streamkernel.losses import Softmax

__all__ = ["Learner", "Lesson", "Said", "learner_for"]

Target = str | int | float | bool | None

_SMALLEST_PROBABILITY = 1e-15


class Said(NamedTuple):
    """What a model said to one record: the label or number it predicts, None before it knows any, and probabilities."""

    label: Any
    probabilities: Mapping[Any, float] | None = None


@dataclass(slots=True)
class Lesson:
    """What a model said to a chunk of records.

    Attributes
    ----------
    predictions
        One a record, None where the model had none to give (no class known yet, or refused).
    probabilities
        One mapping a record for classifiers that give them, else None.
    losses
        The model's own loss before it learnt the record; NaN without a label.
    refused
        A short code and a sentence why the model cannot take a record, by its place in the chunk.
    predict_seconds, learn_seconds
        Seconds a record, or None where they were not measured.
    deviations
        The standard deviation of each prediction, for regressors with a distribution; NaN where it has none.

    """

    predictions: list[Any] = field(default_factory=list)
    probabilities: list[Mapping[Any, float]] | None = None
    losses: list[float] = field(default_factory=list)
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)
    predict_seconds: float | None = None
    learn_seconds: float | None = None
    deviations: list[float] | None = None

    def part(self, chosen: Sequence[bool]) -> Lesson:
        """Give what was said to some of the records: predictions, probabilities and deviations.

        Examples
        --------
        >>> part = Lesson([1.0, 2.0], deviations=[0.1, 0.2]).part([False, True])
        >>> part.predictions, part.probabilities, part.deviations
        ([2.0], None, [0.2])

        """
        probabilities = None if self.probabilities is None else list(compress(self.probabilities, chosen))
        deviations = None if self.deviations is None else list(compress(self.deviations, chosen))
        return Lesson(list(compress(self.predictions, chosen)), probabilities, deviations=deviations)


class Learner(ABC):
    """A model on its way through a stream.

    Parameters
    ----------
    model
        A River classifier, regressor or pipeline.
    learn
        False: the records are predicted, the model stays as it is.

    """

    def __init__(self, model: Model, learn: bool = True) -> None:
        self.model = model
        self.learn = learn
        self._call: Any = model  # River's annotations differ from class to class

    @abstractmethod
    def teach(
        self,
        xs: Sequence[Mapping[str, Any]],
        ys: Sequence[Target],
        stopped: Callable[[], bool] = lambda: False,
        *,
        asked: Sequence[bool] | None = None,
        until_refused: bool = False,
    ) -> Lesson:
        """Predict, then learn, each record in turn.

        Parameters
        ----------
        xs
            Inputs.
        ys
            Targets; None: unlabelled, predicted only.
        stopped
            Asked between records that take long: True ends the chunk there.
        asked
            Whether the prediction of each is wanted; by default, of all. The others are learnt, and what the lesson
            has in their place says nothing.
        until_refused
            Whether the chunk ends with the first record that is refused.

        Returns
        -------
        lesson
            As long as what was done of the chunk.

        """

    @abstractmethod
    def loss(self, y: Any, said: Said, deviation: float) -> float:
        """Judge something the model said before by its own loss, as `teach` does where the target is there at once.

        Parameters
        ----------
        y
            The target that came since.
        said
            What it said.
        deviation
            The deviation of the targets learnt up to this one, the unit in which our regressors count.

        Returns
        -------
        loss
            NaN where it said nothing, or did not know the label yet.

        """


class _OurLearner(Learner):
    """An estimator with `advance`: it takes whole chunks, and how they are cut changes nothing."""

    def teach(
        self,
        xs: Sequence[Mapping[str, Any]],
        ys: Sequence[Target],
        stopped: Callable[[], bool] = lambda: False,
        *,
        asked: Sequence[bool] | None = None,  # noqa: ARG002 - the prediction comes with the learning
        until_refused: bool = False,
    ) -> Lesson:
        if not xs:
            return Lesson()
        targets = ys if self.learn else [None] * len(xs)
        start = time.perf_counter()
        try:
            outcome = self._call.advance(xs, targets)
        except ValueError as error:
            if len(xs) == 1:
                return Lesson([None], None, [math.nan], {0: ("refused", str(error))})
            return self._one_by_one(xs, ys, stopped, until_refused)
        seconds = (time.perf_counter() - start) / len(xs)
        return Lesson(
            outcome.predictions,
            outcome.probabilities,
            outcome.losses.tolist(),
            predict_seconds=None if self.learn else seconds,
            learn_seconds=seconds if self.learn else None,
            deviations=None if outcome.deviations is None else outcome.deviations.tolist(),
        )

    def _one_by_one(
        self, xs: Sequence[Mapping[str, Any]], ys: Sequence[Target], stopped: Callable[[], bool], until_refused: bool
    ) -> Lesson:
        """Find the record the chunk was refused for; nothing is taken twice, for `advance` raised before any row."""
        whole = Lesson()
        probabilities: list[Mapping[Any, float]] = []
        deviations: list[float] = []
        has_deviations = False
        for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
            one = self.teach([x], [y])
            whole.predictions += one.predictions
            probabilities += one.probabilities or [{}]
            has_deviations |= one.deviations is not None
            deviations += one.deviations or [math.nan]
            whole.losses += one.losses
            if one.refused:
                whole.refused[index] = one.refused[0]
            if stopped() or (until_refused and whole.refused):
                break
        whole.probabilities = probabilities if isinstance(self.model, base.Classifier) else None
        whole.deviations = deviations if has_deviations else None
        return whole

    def loss(self, y: Any, said: Said, deviation: float) -> float:
        if said.label is None:
            return math.nan
        own = getattr(self.model, "loss", None)
        given = said.probabilities
        if given is None:
            return float((own or Squared())(float(y) / deviation, said.label / deviation))
        if y not in given:
            return math.nan
        p = min(max(given[y], _SMALLEST_PROBABILITY), 1.0 - _SMALLEST_PROBABILITY)
        if isinstance(own, BinaryLoss):
            side = self._call.classes.index(y)
            score = math.log(p / (1.0 - p))
            return float(own(bool(side), score if side else -score))
        if own is None or isinstance(own, Softmax):
            return -math.log(p)
        # The logarithms of the probabilities are the scores, but for a constant.
        scores = np.log(np.maximum(list(given.values()), _SMALLEST_PROBABILITY))
        return float(own(np.array([list(given).index(y)]), scores[None, :])[0])


class _RiverLearner(Learner):
    """Any other River model: record by record, as River's own loop does it."""

    def __init__(self, model: Model, learn: bool = True) -> None:
        super().__init__(model, learn)
        self._classifies = task_of(model) == "classification"
        self._has_probabilities = self._classifies
        # Most classifiers predict the label of the highest probability, ours among them: asking for both would cost the
        # work twice.
        step: Any = last_step(model)
        plain = type(step).predict_one is base.Classifier.predict_one
        self._predicts_by_itself = not plain and not hasattr(step, "advance")
        self._has_deviations = not self._classifies and "with_dist" in inspect.signature(step.predict_one).parameters

    def teach(
        self,
        xs: Sequence[Mapping[str, Any]],
        ys: Sequence[Target],
        stopped: Callable[[], bool] = lambda: False,
        *,
        asked: Sequence[bool] | None = None,
        until_refused: bool = False,
    ) -> Lesson:
        lesson = Lesson()
        probabilities: list[Mapping[Any, float]] = []
        deviations: list[float] = []
        for index, (x, y, ask) in enumerate(zip(xs, ys, asked or repeat(True, len(xs)), strict=True)):
            label, given, deviation, loss = None, None, math.nan, math.nan
            try:
                start = time.perf_counter()
                if ask:
                    label, given, deviation = self._predict(x)
                predicted = time.perf_counter()
                if self.learn and y is not None:
                    if ask:
                        loss = self._loss(y, label, given)
                    self._call.learn_one(x, y)
                    if (
                        lesson.learn_seconds is None
                    ):  # one record a chunk is timed: an observation costs half a microsecond
                        lesson.learn_seconds = time.perf_counter() - predicted
                if ask and lesson.predict_seconds is None:
                    lesson.predict_seconds = predicted - start
            except (KeyboardInterrupt, SystemExit, MemoryError):
                raise
            # River's models raise whatever their arithmetic raises, its compiled parts a panic that is no Exception.
            except BaseException as error:
                label, given, deviation, loss = None, None, math.nan, math.nan
                lesson.refused[index] = ("refused", f"{type(error).__name__}: {error}")
            lesson.predictions.append(label)
            probabilities.append(given or {})
            deviations.append(deviation)
            lesson.losses.append(loss)
            if stopped() or (until_refused and lesson.refused):
                break
        lesson.probabilities = probabilities if self._has_probabilities else None
        lesson.deviations = deviations if self._has_deviations else None
        return lesson

    def _predict(self, x: Mapping[str, Any]) -> tuple[Any, Mapping[Any, float] | None, float]:
        if self._classifies:
            return *self._classify(x), math.nan
        if self._has_deviations:
            said = self._call.predict_one(x, with_dist=True)
            if isinstance(said, proba.Gaussian):
                # Where rounding made the variance negative, its root is complex.
                return float(said.mu), None, said.sigma if isinstance(said.sigma, float) else math.nan
            self._has_deviations = False
        value = self._call.predict_one(x)
        return None if value is None else float(value), None, math.nan

    def _classify(self, x: Mapping[str, Any]) -> tuple[Any, Mapping[Any, float] | None]:
        if not self._has_probabilities:
            return self._call.predict_one(x), None
        try:
            given = dict(self._call.predict_proba_one(x))  # a copy: the model may go on counting in its own
        except NotImplementedError:
            self._has_probabilities = False
            return self._call.predict_one(x), None
        if self._predicts_by_itself:
            return self._call.predict_one(x), given
        return max(given, key=lambda label: given[label]) if given else None, given

    def loss(self, y: Any, said: Said, deviation: float) -> float:  # noqa: ARG002 - its unit is the target's own
        return math.nan if said.label is None else self._loss(y, said.label, said.probabilities)

    def _loss(self, y: Any, label: Any, given: Mapping[Any, float] | None) -> float:
        if not self._classifies:
            return math.nan if label is None else (float(y) - label) ** 2
        if given is None:
            return float(label != y)
        return float(log_losses([y], [given])[0])


def learner_for(model: Model, learn: bool = True) -> Learner:
    """Choose the way a model takes chunks.

    Examples
    --------
    >>> from river import linear_model
    >>> lesson = learner_for(linear_model.LinearRegression()).teach([{"a": 1.0}, {"a": 1.0}], [2.0, 2.0])
    >>> lesson.predictions, [round(loss, 2) for loss in lesson.losses]
    ([0.0, 0.08], [4.0, 3.69])

    """
    return _OurLearner(model, learn) if hasattr(model, "advance") else _RiverLearner(model, learn)
