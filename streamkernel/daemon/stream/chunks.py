"""One chunk of records on its way: through the model, into the outputs, onto the account."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from connectors.ports import Position, Record
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.accounts import Account, LateAccount
from streamkernel.daemon.late.ledger import Ledger
from streamkernel.daemon.stream.dead_letters import DeadLetterRate
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.lesson import Lesson
from streamkernel.daemon.stream.lines import dead_letter, predictions
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality

__all__ = ["ChunkProcessor", "LateChunk", "Processed"]


@dataclass(slots=True)
class LateChunk:
    """What became of the labels of a chunk, and of the records that wait for one.

    Attributes
    ----------
    account
        Its own counts.
    dead
        Dead letters among the labels, by reason.
    delay
        How long the last record that was learnt had waited, in seconds; None where none was.
    next
        Where the source of the labels goes on; None where none was taken.

    """

    account: LateAccount
    dead: Counter[str] = field(default_factory=Counter)
    delay: float | None = None
    next: Position | None = None


@dataclass(slots=True)
class Processed:
    """What became of a chunk.

    Attributes
    ----------
    account
        Its own counts.
    dead
        Dead letters by reason.
    lines, letters
        What to write to the predictions and to the dead letters.
    line_origins, letter_origins
        Where the record of each of them begins.
    losses
        Losses of the records that have one.
    n_not_finite, n_losses_not_finite
        Records of which a prediction, and losses that, were no finite numbers.
    n_clipped
        Targets so large that their squares overflow.
    n_ignored_inputs
        Inputs of a model of River's whose names came past the daemon's limit.
    n_ignored
        Records that were not learnt, for their class came past the model's limit; they count as unlabelled.
    next
        Where the source goes on; None where nothing was done.
    predict_seconds, learn_seconds
        Seconds a record, where they were measured.
    late
        What became of late labels; None where there are none.

    """

    account: Account = field(default_factory=Account)
    dead: Counter[str] = field(default_factory=Counter)
    lines: list[dict[str, Any]] = field(default_factory=list)
    letters: list[dict[str, Any]] = field(default_factory=list)
    line_origins: list[Position] = field(default_factory=list)
    letter_origins: list[Position] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    next: Position | None = None
    predict_seconds: float | None = None
    learn_seconds: float | None = None
    late: LateChunk | None = None
    n_not_finite: int = 0
    n_losses_not_finite: int = 0
    n_clipped: int = 0
    n_ignored_inputs: int = 0
    n_ignored: int = 0

    @property
    def taken(self) -> int:
        """Records and labels taken from their sources."""
        return self.account.consumed + (0 if self.late is None else self.late.account.taken)


class ChunkProcessor:
    """Takes chunks of records and keeps the books.

    Parameters
    ----------
    learner
        The model.
    quality, loss
        Where the model's marks are kept.
    rate
        Watches the share of dead letters.
    account
        The books so far; added to.

    Attributes
    ----------
    overrun
        Whether there were more dead letters than `rate` bears.
    late
        The ledger of late labels; None where there are none.

    """

    late: Ledger | None = None

    def __init__(
        self,
        learner: Learner,
        quality: Quality,
        loss: ProgressiveLoss,
        rate: DeadLetterRate,
        account: Account,
    ) -> None:
        self.learner = learner
        self.quality = quality
        self.loss = loss
        self.rate = rate
        self.account = account
        self.overrun = False

    @property
    def taken(self) -> int:
        """Records taken since the first start."""
        return self.account.consumed

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Any]]:
        """Give what the model would be shown of a record, inputs and targets; nothing is changed."""
        return [(record.x, record.y)]

    def process(self, records: Sequence[Record], stopped: Callable[[], bool] = lambda: False) -> Processed:
        """Predict and learn a chunk.

        Parameters
        ----------
        records
            Records as they came from the source.
        stopped
            Asked between records that take long: True ends the chunk there.

        """
        usable = [record for record in records if record.fault is None and not record.blank]
        before = self.learner.n_ignored_labels
        lesson = self.learner.teach([record.x for record in usable], [record.y for record in usable], stopped)
        crash.point("mid-batch")
        if len(lesson.predictions) < len(usable):  # it was stopped: what follows the last record done is not consumed
            following = usable[len(lesson.predictions)]
            records = records[: next(index for index, record in enumerate(records) if record is following)]
        return self._settle(records, lesson, self.learner.n_ignored_labels - before)

    def condemn(self, record: Record, reason: str, detail: str) -> Processed:
        """Make a dead letter of a record without showing it to the model."""
        return self._settle([record], Lesson([None], None, [math.nan], {0: (reason, detail)}))

    def _settle(self, records: Sequence[Record], lesson: Lesson, n_ignored: int = 0) -> Processed:
        done = Processed(predict_seconds=lesson.predict_seconds, learn_seconds=lesson.learn_seconds)
        done.n_not_finite, done.n_clipped, done.n_ignored = lesson.n_not_finite, lesson.n_clipped, n_ignored
        done.n_ignored_inputs = lesson.n_ignored_inputs
        told, said = records, lesson
        if lesson.refused or len(lesson.predictions) < len(records):
            told, said = self._sort_out(records, lesson, done)
        done.lines = predictions(told, said)
        done.line_origins = [record.position for record in told]
        targets: list[Any] = [record.y for record in told]
        labels: Sequence[Any] = said.predictions
        given = said.probabilities
        if None in targets:
            labelled = [target is not None for target in targets]
            targets, labels = list(compress(targets, labelled)), list(compress(labels, labelled))
            given = None if given is None else list(compress(given, labelled))
        if records:
            done.next = records[-1].next
        self._book(done, len(records), len(done.lines), len(targets) - n_ignored, len(done.letters))
        self.quality.add(targets, labels, given)
        done.losses = list(filter(math.isfinite, lesson.losses))
        done.n_losses_not_finite = lesson.losses.count(math.inf) + lesson.losses.count(-math.inf)
        self.loss.add(done.losses)
        return done

    def _sort_out(self, records: Sequence[Record], lesson: Lesson, done: Processed) -> tuple[list[Record], Lesson]:
        """Part the records that got a prediction, and what was said to them, from the others, which are booked."""
        told: list[Record] = []
        answered: list[bool] = []
        for number, record in enumerate(records, self.account.consumed + 1):
            if record.blank:
                done.account.skipped += 1
                continue
            fault: tuple[str, str] | None = record.fault
            if fault is None:
                fault = lesson.refused.get(len(answered))
                answered.append(fault is None)
            if fault is None:
                told.append(record)
                continue
            done.dead[fault[0]] += 1
            done.letters.append(dead_letter(record.position, fault[0], fault[1], record.raw))
            done.letter_origins.append(record.position)
            self.overrun |= self.rate.add(number)
        return told, lesson.part(answered)

    def _book(self, done: Processed, consumed: int, predicted: int, labelled: int, dead: int) -> None:
        chunk = done.account
        chunk.consumed, chunk.predicted, chunk.dead = consumed, predicted, dead
        chunk.unlabelled = predicted - labelled
        chunk.learnt = labelled if self.learner.learn else 0
        self.account.add(chunk)
