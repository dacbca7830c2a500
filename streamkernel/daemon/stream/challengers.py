"""Challengers: models next to the published one, which predict and learn the same events, each for itself.

A challenger is shown the events that the published model took, one model after the other. What it raises disables it
and nothing else; what it refuses it does without.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamkernel.daemon.base.events import Events, Prediction
from streamkernel.daemon.stream import isolation
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.learned import Learned, part_of
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.model_status import ModelStatus
from streamkernel.estimators.base import AdvanceResult

__all__ = ["Challengers"]

_log = logging.getLogger(__name__)

_LONGEST_REASON = 300


class Challengers:
    """The models next to the published one.

    Parameters
    ----------
    published
        The name of the published model.
    statuses
        The status of each model by its name, the published one included; kept up to date.
    learners
        Those of the challengers that are not disabled, by their names; kept up to date.
    max_rate, window
        As `DeadLetterRate` has them: a challenger that refuses more of its last events is disabled.

    """

    def __init__(
        self,
        published: str,
        statuses: Mapping[str, ModelStatus],
        learners: Mapping[str, Learner],
        max_rate: float,
        window: int,
    ) -> None:
        self.published = published
        self.statuses = dict(statuses)
        self.learners = dict(learners)
        self._rates = {
            name: DeadLetterRate(max_rate, window, self.statuses[name].recent_refused) for name in self.learners
        }

    @property
    def others(self) -> tuple[str, ...]:
        """The names of all but the published one, the disabled ones included."""
        return tuple(name for name in self.statuses if name != self.published)

    def advance(self, events: Events, learned: Learned, seconds: float) -> None:
        """Predict and learn the events that the published model took, and add the predictions to its result.

        Parameters
        ----------
        events
            Those that the published model was shown.
        learned
            What became of them in the published model.
        seconds
            How long it took for that.

        """
        published = self.statuses[self.published]
        n_done = len(learned.result.predictions)
        places = [place for place in range(n_done) if place not in learned.refused]
        published.shown += n_done
        published.shown_here += n_done
        published.seconds += seconds
        published.refused += len(learned.refused)
        published.not_finite += learned.n_not_finite
        if not places:
            return
        chosen = [place not in learned.refused for place in range(n_done)]
        for name in list(self.learners):
            result = self._advance_one(name, events, places)
            if result is not None:
                learned.others[name] = result if len(places) == n_done else _spread(result, chosen)

    def loss(self, name: str, y: Any, prediction: Prediction, deviation: float) -> float:
        """Compute the loss of an earlier prediction of a challenger; see `Learner.loss`."""
        try:
            return self.learners[name].loss(y, prediction, deviation)
        except (Exception, SystemExit) as error:
            self.disable(name, _why(error))
            return math.nan

    def disable(self, name: str, reason: str) -> None:
        """Do without a challenger from now on."""
        reason = reason[:_LONGEST_REASON]
        _log.error("the model %s is disabled, the others continue: %s", name, reason)
        del self.learners[name]
        status = self.statuses[name]
        status.disabled, status.recent_refused = reason, []

    def disable_deadly(self, rows: Sequence[tuple[Mapping[str, Any], Any]], stopped: Callable[[], bool]) -> None:
        """Disable each challenger that a record kills the process in, tried in processes of their own."""
        for name, learner in list(self.learners.items()):
            if not stopped() and isolation.kills(learner, rows, stopped):
                self.disable(name, "a record crashed the process in it repeatedly")

    def _advance_one(self, name: str, events: Events, places: Sequence[int]) -> AdvanceResult | None:
        """Take one challenger through the events at these places; None where it failed at the first."""
        learner, status = self.learners[name], self.statuses[name]
        start = time.perf_counter()
        xs = events.xs_for(learner.model)
        try:
            # Copies: what a step of it changes must not reach the others, nor a record that waits for its label.
            learned = learner.advance(
                [dict(xs[place]) for place in places],
                [events.ys[place] for place in places],
                predict=None if events.predict is None else [events.predict[place] for place in places],
                catch=True,
            )
        except (Exception, SystemExit) as error:
            learned = Learned(failure=error)
        finally:
            status.seconds += time.perf_counter() - start
        status.not_finite += learned.n_not_finite
        n_done = len(learned.result.predictions)
        n_borne = self._bear(name, learned) if learned.refused else n_done
        status.shown += n_borne
        status.shown_here += n_borne
        if learned.failure is not None and name in self.learners:
            self.disable(name, _why(learned.failure))
        if n_borne == len(places) or not n_borne:
            return learned.result if n_borne else None
        # However the stream is cut, nothing is heard of it after the event that was too much.
        part = part_of(learned.result, [place < n_borne for place in range(n_done)])
        return _spread(part, [place < n_borne for place in range(len(places))])

    def _bear(self, name: str, learned: Learned) -> int:
        """Count what a challenger refused; disable it where that is too much, and return how many events it took."""
        status, rate = self.statuses[name], self._rates[name]
        for place, (_, detail) in sorted(learned.refused.items()):
            if not status.refused:
                _log.warning("the model %s refuses a record and continues without it: %.300s", name, detail)
            status.refused += 1
            overrun = rate.add(status.shown + place + 1)
            if overrun:
                self.disable(
                    name, f"it refused more than {rate.max_rate:.0%} of its last {rate.window:,} records: {detail}"
                )
                return place + 1
        status.recent_refused = rate.recent
        return len(learned.result.predictions)


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _spread(result: AdvanceResult, chosen: Sequence[bool]) -> AdvanceResult:
    """Return results of the chosen events at their places among all; None and NaN at the others.

    Examples
    --------
    >>> spread = _spread(AdvanceResult([1.0], None, np.zeros(1)), [False, True])
    >>> spread.predictions, spread.losses
    ([None, 1.0], array([nan,  0.]))

    """
    labels: list[Any] = [None] * len(chosen)
    probabilities: list[Any] | None = None if result.probabilities is None else [{} for _ in chosen]
    rows = np.flatnonzero(chosen).tolist()
    for row, place in enumerate(rows):
        labels[place] = result.predictions[row]
        if probabilities is not None and result.probabilities is not None:
            probabilities[place] = result.probabilities[row]
    losses = np.full(len(chosen), math.nan)
    losses[rows] = result.losses
    deviations = None
    if result.deviations is not None:
        deviations = np.full(len(chosen), math.nan)
        deviations[rows] = result.deviations
    return replace(result, predictions=labels, probabilities=probabilities, losses=losses, deviations=deviations)
