"""Challengers: models next to the published one, which predict and learn the same events, each for itself.

A challenger is shown the events that the published model took, one model after the other. What it raises disables it
and nothing else; what it refuses it does without.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.stream import isolation
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.results import part_of, spread
from streamkernel.estimators.base import AdvanceResult

__all__ = ["Challengers", "ModelStatus"]

_log = logging.getLogger(__name__)

_LONGEST_REASON = 300


@dataclass(slots=True)
class ModelStatus:
    """The status of one of several models on a stream.

    Attributes
    ----------
    began
        How many records had been consumed when it began.
    shown
        How many events it was given since.
    recent_refused
        Of these, the numbers of the latest that it refused, as `DeadLetterRate.recent` gives them.
    disabled
        Why it is disabled; empty where it is not.
    shown_here, refused, not_finite
        Events of this process that it was given, those of them that it refused, and those of which a prediction was no
        finite number.
    seconds
        How long this process was at work on it.

    Examples
    --------
    >>> ModelStatus.from_json(ModelStatus(began=500, shown=20, refused=3).to_json())
    ModelStatus(began=500, shown=20, recent_refused=[], disabled='', shown_here=0, refused=0, not_finite=0, seconds=0.0)

    """

    began: int = 0
    shown: int = 0
    recent_refused: list[int] = field(default_factory=list)
    disabled: str = ""
    shown_here: int = 0
    refused: int = 0
    not_finite: int = 0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of it."""
        return {
            "began": self.began,
            "shown": self.shown,
            **({"recent_refused": self.recent_refused} if self.recent_refused else {}),
            **({"disabled": self.disabled} if self.disabled else {}),
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        began, shown = kept.get("began", 0), kept.get("shown", 0)
        return cls(began, shown, list(kept.get("recent_refused", ())), kept.get("disabled", ""))


class Challengers:
    """The models next to the published one; by default there are none.

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
        published: str = "",
        statuses: Mapping[str, ModelStatus] = MappingProxyType({}),
        learners: Mapping[str, Learner] = MappingProxyType({}),
        max_rate: float = 1.0,
        window: int = 1,
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

    def advance(self, batch: RecordBatch, seconds: float) -> None:
        """Predict and learn the rows that the published model took, and add the results to the batch.

        Parameters
        ----------
        batch
            With the results of the published model.
        seconds
            How long that model took.

        """
        published = self.statuses[self.published]
        n_done = len(batch.result.losses)
        places = [place for place in range(n_done) if place not in batch.refused]
        published.shown += n_done
        published.shown_here += n_done
        published.seconds += seconds
        published.refused += len(batch.refused)
        published.not_finite += batch.n_not_finite
        if not places:
            return
        chosen = [place not in batch.refused for place in range(n_done)]
        for name in list(self.learners):
            result = self._advance_one(name, batch, places)
            if result is not None:
                batch.others[name] = result if len(places) == n_done else spread(result, chosen)

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

    def _advance_one(self, name: str, batch: RecordBatch, places: Sequence[int]) -> AdvanceResult | None:
        """Take one challenger through the rows at these places; None if it failed at the first."""
        learner, status = self.learners[name], self.statuses[name]
        start = time.perf_counter()
        xs = batch.inputs_for(learner.model)
        shown = RecordBatch(
            # Copies: a step may change them, and the other models and waiting records need them as they were.
            inputs=[dict(xs[place]) for place in places],
            targets=[batch.targets[place] for place in places],
            wanted=None if batch.wanted is None else [batch.wanted[place] for place in places],
        )
        try:
            learner.advance(shown, catch=True)
        except (Exception, SystemExit) as error:
            shown = RecordBatch(failure=error)
        finally:
            status.seconds += time.perf_counter() - start
        status.not_finite += shown.n_not_finite
        n_done = len(shown.result.losses)
        n_counted = self._count_refused(name, shown) if shown.refused else n_done
        status.shown += n_counted
        status.shown_here += n_counted
        if shown.failure is not None and name in self.learners:
            self.disable(name, _why(shown.failure))
        if n_counted == len(places) or not n_counted:
            return shown.result if n_counted else None
        # However the stream is cut, a model says nothing after the row that was too much.
        part = part_of(shown.result, [place < n_counted for place in range(n_done)])
        return spread(part, [place < n_counted for place in range(len(places))])

    def _count_refused(self, name: str, shown: RecordBatch) -> int:
        """Count the rows a challenger refused; disable it if they are too many, and return how many rows it took."""
        status, rate = self.statuses[name], self._rates[name]
        for place, (_, detail) in sorted(shown.refused.items()):
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
        return len(shown.result.losses)


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
