"""One chunk of records on its way: events for the model, then lines, dead letters, counts and scores."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamkernel.connectors.ports import Fault, Label, Record
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.events import Events
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.stream import isolation
from streamkernel.daemon.stream.calibration import Calibration
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.chunk_result import ChunkResult, Scored
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.learned import Learned
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality

__all__ = ["Processor", "Scores", "Stage"]


class Stage(Protocol):
    """A stage between source and model: makes events of records, and settles them once the model is done with them."""

    @property
    def taken(self) -> int:
        """Labels taken from a source of their own since the first start."""

    def begin(self, records: Sequence[Record], done: ChunkResult) -> Sequence[Any]:
        """Begin a chunk; give what `events` takes, an item for each record."""

    def events(self, items: Sequence[Any]) -> Events:
        """Make the events of what is left of a chunk."""

    def settle(self, events: Events, learned: Learned, done: ChunkResult) -> int:
        """Add what became of the events to the chunk; give how many items are done with."""

    def quarantine(self, record: Record, fault: Fault, done: ChunkResult) -> None:
        """Make a dead letter of a record that no model is shown."""

    def close(self, done: ChunkResult) -> bool:
        """End a chunk; say whether there were more dead letters among late labels than is borne."""

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        """Return what the model would be shown of a record, inputs and targets; nothing is changed."""

    def to_json(self) -> dict[str, int]:
        """Return the counts of late labels by name; empty where there are none."""


@dataclass(frozen=True)
class Scores:
    """The report metrics and the mean of the loss of one model."""

    quality: Quality
    loss: ProgressiveLoss

    def add(self, scored: Scored, learns: bool) -> None:
        """Take in what the model predicted in a chunk, and leave the finite losses in it."""
        self.quality.add(scored.targets, scored.predictions, scored.probabilities)
        # A model that only serves has no losses: its labels are not shown to it.
        n_nan = scored.n_losses_not_finite if learns else 0
        scored.n_losses_not_finite = n_nan + scored.losses.count(math.inf) + scored.losses.count(-math.inf)
        scored.losses = list(filter(math.isfinite, scored.losses))
        self.loss.add(scored.losses, scored.n_losses_not_finite)


@dataclass
class Processor:
    """Takes chunks of records through a stage and the model, and counts and scores what became of them.

    How a stream is cut into chunks changes nothing.

    Parameters
    ----------
    learner
        The model.
    quality, loss
        The report metrics and the mean of the loss.
    rate
        Watches the share of dead letters.
    counts
        Those so far; added to.
    stage
        Makes events of records.
    checkpoint
        The number of the checkpoint that the model is from, which each line of predictions names; None: it learns.
    encoding
        That of the source of the records.
    name
        The name of the model, where there are several, which each line names, too.
    challengers
        The models next to it; None where there are none.
    others
        The scores of the challengers, by their names.
    writes_others
        Whether each line has the predictions of the challengers.
    calibration
        The calibration of its predictions; None where it is not looked at.

    Attributes
    ----------
    overrun
        Whether there were more dead letters than is borne.

    """

    learner: Learner
    quality: Quality
    loss: ProgressiveLoss
    rate: DeadLetterRate
    counts: RecordCounts
    stage: Stage
    checkpoint: int | None = None
    encoding: str = "utf-8"
    name: str = ""
    challengers: Challengers | None = None
    others: Mapping[str, Scores] = field(default_factory=dict)
    writes_others: bool = False
    calibration: Calibration | None = None
    overrun: bool = field(default=False, init=False)

    @property
    def taken(self) -> int:
        """Records and labels taken since the first start."""
        return self.counts.consumed + self.stage.taken

    @property
    def models(self) -> list[Model]:
        """All models that learn, the published one first."""
        others = self.challengers.learners.values() if self.challengers is not None else ()
        return [self.learner.model, *(learner.model for learner in others)]

    def process(self, records: Sequence[Record], stopped: Callable[[], bool] = lambda: False) -> ChunkResult:
        """Predict and learn a chunk.

        Parameters
        ----------
        records
            Records as they came from the source.
        stopped
            Asked between records that take long: True ends the chunk there.

        """
        done = self._new_chunk()
        left = self.stage.begin(records, done)
        while left:
            events = self.stage.events(left)
            start = time.perf_counter()
            learned = self.learner.advance(
                events.xs_for(self.learner.model),
                events.ys,
                stopped,
                predict=events.predict,
                until_refused=events.until_refused,
            )
            if self.challengers is not None:
                self.challengers.advance(events, learned, time.perf_counter() - start)
            crash.point("mid-batch")
            done.add(learned)
            left = left[self.stage.settle(events, learned, done) :]
            if learned.stopped:
                break
        return self.close(done)

    def quarantine(self, record: Record, reason: str, detail: str) -> ChunkResult:
        """Make a dead letter of a record without showing it to the model."""
        done = self._new_chunk()
        self.stage.begin([], done)
        self.stage.quarantine(record, Fault(reason, detail), done)
        return self.close(done)

    def kills(self, record: Record, stopped: Callable[[], bool]) -> bool:
        """Return whether the process dies when the published model learns a record; see `isolation.kills`.

        Challengers in which it dies are disabled.
        """
        rows = self.stage.rows(record)
        if isolation.kills(self.learner, rows, stopped):
            return True
        if self.challengers is not None:
            self.challengers.disable_deadly(rows, stopped)
        return False

    def _new_chunk(self) -> ChunkResult:
        wanted = self.writes_others and self.challengers is not None
        written = self.challengers.others if wanted and self.challengers else ()
        return ChunkResult(encoding=self.encoding, model=self.name, written=written)

    def close(self, done: ChunkResult) -> ChunkResult:
        """Add a chunk to the counts and scores, and return it."""
        if self.checkpoint is not None:
            for line in done.lines:
                line["checkpoint"] = self.checkpoint
        self.overrun |= self.stage.close(done)
        counts = done.counts
        counts.learned = counts.learned - done.n_ignored if self.learner.learn else 0
        counts.unlabeled += done.n_ignored
        for number in done.dead_numbers:
            self.overrun |= self.rate.add(self.counts.consumed + number)
        self.counts.add(counts)
        Scores(self.quality, self.loss).add(done, self.learner.learn)
        if self.calibration is not None:
            self.calibration.add(done)
        for name, scored in done.others.items():
            self.others[name].add(scored, self.learner.learn)
        return done
