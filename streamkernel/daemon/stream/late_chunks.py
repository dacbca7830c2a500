"""A chunk of records and late labels on its way: through the ledger and the model, into the outputs and the books."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from connectors.ports import Label, Record
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.accounts import Account
from streamkernel.daemon.base.events import LabelRecord, Said
from streamkernel.daemon.late.keys import key_of
from streamkernel.daemon.late.ledger import Ledger
from streamkernel.daemon.late.step import Early, Fate, Step
from streamkernel.daemon.stream.chunks import ChunkProcessor, LateChunk, Processed
from streamkernel.daemon.stream.dead_letters import DeadLetterRate
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.lesson import Lesson
from streamkernel.daemon.stream.lines import dead_letter, label_letter, label_origin, predictions
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality

__all__ = ["LateProcessor"]

_PREDICTED = frozenset({Fate.LABELLED, Fate.KEYLESS, Fate.REPEATED, Fate.KEPT, Fate.MET})
_COUNTED = {
    Fate.KEYLESS: ("keyless",),
    Fate.REPEATED: ("repeated",),
    Fate.KEPT: ("kept",),
    Fate.MET: ("kept", "matched"),
    Fate.MATCHED: ("matched",),
    Fate.DOUBLED: ("doubled",),
    Fate.UNMATCHED: ("unmatched",),
    Fate.EARLY: ("early",),
}


class LateProcessor(ChunkProcessor):
    """Takes chunks of records and labels and keeps the books.

    How they are cut into chunks changes nothing: decisions are made record by record, and what follows one that the
    model refuses is decided after the refusal.

    Parameters
    ----------
    learner, quality, loss, rate, account
        As `ChunkProcessor` has them.
    late
        The ledger; kept up to date.
    label_rate
        Watches the share of dead letters among the labels.

    """

    def __init__(
        self,
        learner: Learner,
        quality: Quality,
        loss: ProgressiveLoss,
        rate: DeadLetterRate,
        account: Account,
        late: Ledger,
        label_rate: DeadLetterRate,
    ) -> None:
        super().__init__(learner, quality, loss, rate, account)
        self.late: Ledger = late
        self.label_rate = label_rate

    @property
    def taken(self) -> int:
        """Records and labels taken since the first start."""
        return self.account.consumed + self.late.account.taken

    def process(self, records: Sequence[Record], stopped: Callable[[], bool] = lambda: False) -> Processed:
        """Predict records, and learn those that have their label by now; see `ChunkProcessor.process`.

        Parameters
        ----------
        records
            Records and labels, which are `LabelRecord`, in the order in which they are to be dealt with.
        stopped
            Asked between records that take long: True ends the chunk there.

        """
        name = self.late.key
        left = [(record, key_of(record.x.pop(name, None))) for record in records]
        done = Processed(late=LateChunk(self.late.begin_chunk()))
        while left:
            number, refused = self._one_pass(left, done, stopped)
            if number < len(left) and not refused:
                break  # it was stopped
            left = left[number:]
        self._close(done)
        return done

    def condemn(self, record: Record, reason: str, detail: str) -> Processed:
        """Make a dead letter of a record or a label without showing it to the model."""
        done = Processed(late=LateChunk(self.late.begin_chunk()))
        step = Step(record, None, 0, 0, Fate.DEAD, fault=(reason, detail))
        self._commit([step], Lesson(), done)
        self._close(done)
        return done

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        """Give what the model would be shown of a record or a label; nothing is changed."""
        x = {name: value for name, value in record.x.items() if name != self.late.key}
        step = self.late.decide(record._replace(x=x), key_of(record.x.get(self.late.key)), 0)
        self.late.journal.take_back(step.mark)
        return [(inputs, y) for inputs, y, _ in step.rows]

    def _one_pass(
        self, left: Sequence[tuple[Record, str | None]], done: Processed, stopped: Callable[[], bool]
    ) -> tuple[int, bool]:
        """Go up to the first one the model refuses; give the number of records and labels done, and whether it did."""
        late = self.late
        late.journal.forget()
        steps: list[Step] = []
        rows: list[tuple[dict[str, Any], Label | None, bool]] = []
        for record, key in left:
            step = late.decide(record, key, len(rows))
            steps.append(step)
            rows += step.rows
        before = self.learner.n_ignored_labels
        lesson = self.learner.teach(
            [x for x, _, _ in rows],
            [y for _, y, _ in rows],
            stopped,
            asked=[ask for _, _, ask in rows],
            until_refused=True,
        )
        crash.point("mid-batch")
        done.n_ignored += self.learner.n_ignored_labels - before
        done.n_not_finite += lesson.n_not_finite
        done.n_clipped += lesson.n_clipped
        done.n_ignored_inputs += lesson.n_ignored_inputs
        # Only the last row done may have been refused.
        taken = len(lesson.predictions) - len(lesson.refused)
        whole = next((i for i, step in enumerate(steps) if step.row + len(step.rows) > taken), len(steps))
        if whole < len(steps):
            late.journal.take_back(steps[whole].mark)
        self._commit(steps[:whole], lesson, done)
        done.predict_seconds = done.predict_seconds or lesson.predict_seconds
        done.learn_seconds = done.learn_seconds or lesson.learn_seconds
        if lesson.refused:
            self._refuse(steps[whole], lesson, done)
            whole += 1
        return whole, bool(lesson.refused)

    def _refuse(self, step: Step, lesson: Lesson, done: Processed) -> None:
        """Deal with the record or label the model refused; the decision on it was taken back."""
        row, fault = next(iter(lesson.refused.items()))
        late, books = self.late, done.late
        assert books is not None
        if row == step.row:
            self._commit([Step(step.record, step.key, 0, row, Fate.DEAD, fault=fault)], lesson, done)
            return
        # A record whose label waited: it got its prediction, and the label is refused. It waits for another one.
        assert step.key is not None
        early = late.waiting.pop(step.key)
        assert early is not None
        again = Step(step.record, step.key, 0, step.row)
        late.keep(again)
        self._commit([again], lesson, done)
        self._bury_label(early, step.key, fault, done)

    def _commit(self, steps: Sequence[Step], lesson: Lesson, done: Processed) -> None:
        """Book what the model took, as decided."""
        late, books = self.late, done.late
        assert books is not None
        told: list[Record] = []
        asked = [False] * len(lesson.predictions)
        targets: list[Label] = []
        saids: list[Said] = []
        said = Said(None)
        for step in steps:
            self._count(step, done)
            if step.fate is Fate.DEAD:
                self._bury(step, done)
                continue
            if step.fate in _PREDICTED:
                asked[step.row] = True
                told.append(step.record)
                said = self._said(lesson, step.row)
            if step.fate is Fate.KEPT and step.entry is not None:
                step.entry.said = said
            elif step.fate is Fate.MATCHED and step.entry is not None:
                said = step.said or step.entry.said or said
                books.delay = late.now - step.entry.arrived
                late.release(step.entry)
            for given_up in step.expired:
                late.release(given_up)
            if step.y is not None:
                targets.append(step.y)
                saids.append(said)
                self._judge(step, said, lesson, done)
        for step in steps:
            if step.fate is Fate.KEPT and step.key is not None:
                late.pack(step.key)
        done.lines += predictions(told, lesson.part(asked))
        done.line_origins += [record.position for record in told]
        done.account.predicted += len(told)
        done.account.learnt += len(targets) if self.learner.learn else 0
        if targets:
            self._mark(targets, saids)

    def _count(self, step: Step, done: Processed) -> None:
        """Count a record or a label, and note where its source goes on and whose turn it is."""
        books = done.late
        assert books is not None
        following = step.record.next
        of_labels = isinstance(step.record, LabelRecord)
        if of_labels:
            books.account.taken += 1
            books.next = following
            self.late.positions[following.partition] = following
        else:
            done.account.consumed += 1
            done.next = following
        self.late.label_next = not of_labels
        if step.fate is Fate.SKIPPED:
            (books.account if of_labels else done.account).skipped += 1
        for name in _COUNTED.get(step.fate, ()):
            setattr(books.account, name, getattr(books.account, name) + 1)
        if step.fate is Fate.LABELLED and step.early is not None:
            books.account.doubled += 1
        books.account.expired += len(step.expired)
        books.account.unmatched += step.dropped

    def _judge(self, step: Step, said: Said, lesson: Lesson, done: Processed) -> None:
        """Note the loss of what was said to a record that has its target now."""
        if not self.learner.learn:
            return
        late = self.late
        if self.quality.of_numbers:
            late.moments = late.moments.after(float(step.y))  # type: ignore[arg-type]
        at_once = step.fate is Fate.LABELLED
        loss = lesson.losses[step.row] if at_once else self.learner.loss(step.y, said, late.moments.deviation)
        if math.isfinite(loss):
            done.losses.append(loss)
        elif math.isinf(loss):
            done.n_losses_not_finite += 1

    def _mark(self, targets: Sequence[Label], saids: Sequence[Said]) -> None:
        # What came before the first label was not predicted; whether a model gives probabilities shows in the others.
        pairs = [(y, said) for y, said in zip(targets, saids, strict=True) if said.label is not None]
        given = [said.probabilities for _, said in pairs if said.probabilities is not None]
        self.quality.add(
            [y for y, _ in pairs], [said.label for _, said in pairs], given if len(given) == len(pairs) else None
        )

    def _said(self, lesson: Lesson, row: int) -> Said:
        return Said(lesson.predictions[row], None if lesson.probabilities is None else lesson.probabilities[row])

    def _bury(self, step: Step, done: Processed) -> None:
        """Make a dead letter."""
        record, fault, books = step.record, step.fault, done.late
        assert fault is not None
        assert books is not None
        if isinstance(record, LabelRecord):
            books.account.dead += 1
            books.dead[fault[0]] += 1
            done.letters.append(label_letter(record.position, *fault, record.raw))
            done.letter_origins.append(label_origin(record.position))
            self.overrun |= self.label_rate.add(self.late.account.taken + books.account.taken)
        else:
            done.account.dead += 1
            done.dead[fault[0]] += 1
            done.letters.append(dead_letter(record.position, *fault, record.raw))
            done.letter_origins.append(record.position)
            self.overrun |= self.rate.add(self.account.consumed + done.account.consumed)

    def _bury_label(self, early: Early, key: str, fault: tuple[str, str], done: Processed) -> None:
        """Make a dead letter of a label that waited for its record; its text is gone, and what it said is written."""
        books = done.late
        assert books is not None
        books.account.dead += 1
        books.dead[fault[0]] += 1
        done.letters.append(label_letter(early.position, *fault, self.late.written(early, key)))
        done.letter_origins.append(label_origin(early.position))
        self.overrun |= self.label_rate.add(self.late.account.taken + books.account.taken)

    def _close(self, done: Processed) -> None:
        """Add the chunk to the books."""
        late, books = self.late, done.late
        assert books is not None
        done.account.unlabelled = books.account.keyless + books.account.repeated + done.n_ignored
        done.account.learnt -= done.n_ignored
        self.account.add(done.account)
        late.account.add(books.account)
        late.recent_dead = self.label_rate.recent
        self.loss.add(done.losses)
