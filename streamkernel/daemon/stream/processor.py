"""One chunk of records on its way: events for the model, then lines, dead letters, counts and scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from connectors.ports import Fault, Label, Record
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.events import Events
from streamkernel.daemon.stream.chunk_result import ChunkResult
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.learned import Learned
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality

__all__ = ["Processor", "Stage"]


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
    overrun: bool = field(default=False, init=False)

    @property
    def taken(self) -> int:
        """Records and labels taken since the first start."""
        return self.counts.consumed + self.stage.taken

    def process(self, records: Sequence[Record], stopped: Callable[[], bool] = lambda: False) -> ChunkResult:
        """Predict and learn a chunk.

        Parameters
        ----------
        records
            Records as they came from the source.
        stopped
            Asked between records that take long: True ends the chunk there.

        """
        done = ChunkResult(encoding=self.encoding)
        left = self.stage.begin(records, done)
        while left:
            events = self.stage.events(left)
            learned = self.learner.advance(
                events.xs, events.ys, stopped, predict=events.predict, until_refused=events.until_refused
            )
            crash.point("mid-batch")
            done.add(learned)
            left = left[self.stage.settle(events, learned, done) :]
            if learned.stopped:
                break
        return self._closed(done)

    def quarantine(self, record: Record, reason: str, detail: str) -> ChunkResult:
        """Make a dead letter of a record without showing it to the model."""
        done = ChunkResult(encoding=self.encoding)
        self.stage.begin([], done)
        self.stage.quarantine(record, Fault(reason, detail), done)
        return self._closed(done)

    def _closed(self, done: ChunkResult) -> ChunkResult:
        """Add a chunk to the counts and scores, and return it."""
        if self.checkpoint is not None:
            for line in done.lines:
                line["checkpoint"] = self.checkpoint
        self.overrun |= self.stage.close(done)
        counts = done.counts
        counts.learnt = counts.learnt - done.n_ignored if self.learner.learn else 0
        counts.unlabelled += done.n_ignored
        for number in done.dead_numbers:
            self.overrun |= self.rate.add(self.counts.consumed + number)
        self.counts.add(counts)
        self.quality.add(done.targets, done.predictions, done.probabilities)
        # A model that only serves has no losses: its labels are not shown to it.
        n_nan = done.n_losses_not_finite if self.learner.learn else 0
        done.n_losses_not_finite = n_nan + done.losses.count(math.inf) + done.losses.count(-math.inf)
        done.losses = list(filter(math.isfinite, done.losses))
        self.loss.add(done.losses, done.n_losses_not_finite)
        return done
