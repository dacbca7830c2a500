"""Test, then train: one chunk of records through a model, by its fastest way that changes no bit of the result."""

from __future__ import annotations

import inspect
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from river import base, proba
from river.optim.losses import Squared

from streamkernel.daemon.base.events import Said
from streamkernel.daemon.base.model import Model, last_step, task_of
from streamkernel.daemon.stream.lesson import Lesson
from streamkernel.daemon.stream.names import Names
from streamkernel.daemon.stream.quality import log_losses
from streamkernel.finite import LARGEST, clipped, loss_of_number

__all__ = ["Learner", "Lesson", "Said", "learner_for"]

Target = str | int | float | bool | None

_SQUARED = Squared()


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
        self._numbers = task_of(model) == "regression"
        self._last_step: Any = last_step(model)

    @property
    def names(self) -> str:
        """What a checkpoint keeps of the names the model was given, for a model that does not bound them itself."""
        return ""

    @property
    def n_ignored_labels(self) -> int:
        """Records the model did not learn, for their class came past its limit; 0 where it has none."""
        return int(getattr(self._last_step, "n_ignored_labels", 0))

    def _beyond(self, ys: Sequence[Target]) -> int:
        """Count the numbers among targets whose squares overflow."""
        return sum([y is not None and abs(y) > LARGEST for y in ys]) if self._numbers else 0  # type: ignore[arg-type]

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
        n_clipped = self._beyond(targets)
        start = time.perf_counter()
        try:
            outcome = self._call.advance(xs, targets)
        except ValueError as error:
            if len(xs) == 1:
                return Lesson([None], None, [math.nan], {0: ("refused", str(error))})
            return self._one_by_one(xs, ys, stopped, until_refused)
        seconds = (time.perf_counter() - start) / len(xs)
        lesson = Lesson(
            outcome.predictions,
            outcome.probabilities,
            outcome.losses.tolist(),
            predict_seconds=None if self.learn else seconds,
            learn_seconds=seconds if self.learn else None,
            deviations=None if outcome.deviations is None else outcome.deviations.tolist(),
            n_clipped=n_clipped,
        )
        lesson.sift()
        return lesson

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
            whole.n_not_finite += one.n_not_finite
            whole.n_clipped += one.n_clipped
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
        if said.probabilities is None:
            return float(self._call.loss_of(y, said.label, deviation))
        return float(self._call.loss_of(y, said.probabilities))


class _RiverLearner(Learner):
    """Any other River model: record by record, as River's own loop does it."""

    def __init__(self, model: Model, learn: bool = True, names: Names | None = None) -> None:
        super().__init__(model, learn)
        self._names = names or Names()
        self._classifies = not self._numbers
        self._has_probabilities = self._classifies
        # Most classifiers predict the label of the highest probability, ours among them: asking for both would cost the
        # work twice.
        step: Any = last_step(model)
        plain = type(step).predict_one is base.Classifier.predict_one
        self._predicts_by_itself = not plain and not hasattr(step, "advance")
        self._has_deviations = not self._classifies and "with_dist" in inspect.signature(step.predict_one).parameters

    @property
    def names(self) -> str:
        return self._names.to_text()

    def teach(
        self,
        xs: Sequence[Mapping[str, Any]],
        ys: Sequence[Target],
        stopped: Callable[[], bool] = lambda: False,
        *,
        asked: Sequence[bool] | None = None,
        until_refused: bool = False,
    ) -> Lesson:
        names = self._names
        lesson = Lesson(n_clipped=self._beyond(ys) if self.learn else 0)
        probabilities: list[Mapping[Any, float]] = []
        deviations: list[float] = []
        for index, (x, y, ask) in enumerate(zip(xs, ys, asked or repeat(True, len(xs)), strict=True)):
            label, given, deviation, loss = None, None, math.nan, math.nan
            learns = self.learn and y is not None
            if not names.knows(x):
                x, n_ignored = names.bound(x, learns)
                lesson.n_ignored_inputs += n_ignored if learns else 0
            try:
                start = time.perf_counter()
                if ask:
                    label, given, deviation = self._predict(x)
                predicted = time.perf_counter()
                if learns:
                    target = self._bounded(y)
                    if ask:
                        loss = self._loss(target, label, given)
                    self._call.learn_one(x, target)
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
        lesson.sift()
        return lesson

    def _bounded(self, y: Any) -> Any:
        return clipped(y) if self._numbers and abs(y) > LARGEST else y

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
            return _label(self._call.predict_one(x)), None
        try:
            given = dict(self._call.predict_proba_one(x))  # a copy: the model may go on counting in its own
        except NotImplementedError:
            self._has_probabilities = False
            return _label(self._call.predict_one(x)), None
        float(sum(given.values()))  # raises here, where it is borne, where they are no numbers
        if self._predicts_by_itself:
            return _label(self._call.predict_one(x)), given
        return max(given, key=lambda label: given[label]) if given else None, given

    def loss(self, y: Any, said: Said, deviation: float) -> float:  # noqa: ARG002 - its unit is the target's own
        return math.nan if said.label is None else self._loss(y, said.label, said.probabilities)

    def _loss(self, y: Any, label: Any, given: Mapping[Any, float] | None) -> float:
        if not self._classifies:
            return math.nan if label is None or not math.isfinite(label) else loss_of_number(_SQUARED, float(y), label)
        if given is None:
            return float(label != y)
        return float(log_losses([y], [given])[0])


def _label(said: Any) -> Any:
    """Give what a model predicted, which may be anything, where it has a place in a line and in a metric."""
    if said is None or isinstance(said, str | int | float | np.generic):
        return said
    raise TypeError(f"the model predicted {said!r:.40}, which is no label")


def learner_for(model: Model, learn: bool = True, names: Names | None = None) -> Learner:
    """Choose the way a model takes chunks.

    Parameters
    ----------
    model, learn
        As `Learner` has them.
    names
        The names that a model of River's may be given, by default 10,000; an estimator of ours bounds them itself.

    Examples
    --------
    >>> from river import linear_model
    >>> lesson = learner_for(linear_model.LinearRegression()).teach([{"a": 1.0}, {"a": 1.0}], [2.0, 2.0])
    >>> lesson.predictions, [round(loss, 2) for loss in lesson.losses]
    ([0.0, 0.08], [4.0, 3.69])

    """
    return _OurLearner(model, learn) if hasattr(model, "advance") else _RiverLearner(model, learn, names)
