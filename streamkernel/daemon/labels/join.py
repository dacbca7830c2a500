"""The join of late labels: which record waits, which label waits, and what a record or a label that comes means.

Each decision is made as if the model took every record, and can be taken back where it did not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

from streamkernel.connectors.ports import Fault, Label, Position, Record
from streamkernel.daemon.base.counts import LabelCounts
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.labels.decision import Decision, EarlyLabel, LabelStatus, PendingEntry
from streamkernel.daemon.labels.keyed_queue import KeyedQueue, UndoLog
from streamkernel.daemon.labels.pending_record import PendingRecord, pack, unpack
from streamkernel.daemon.labels.sizes import size_of_key, size_of_label, size_of_record

__all__ = ["LabelJoin"]


@dataclass(eq=False)
class LabelJoin:
    """A join of records and late labels by key: what waits on either side, and the keys that are done with.

    Parameters
    ----------
    key, target
        The names of the key field and of the labels' target.
    timeout
        Seconds after which a record or a label is given up. They are those in which the daemon ran: while it is down,
        labels wait in their source, and their records must not expire meanwhile.
    limit
        The most records, labels and remembered keys, each.
    max_bytes
        The most bytes of each of them, as `labels.sizes` counts; but one is kept, however large.
    learn
        False: predictions are compared with labels, and nothing is learned.
    clock
        Gives seconds, and never goes back.

    Attributes
    ----------
    pending, waiting
        Records and labels by their keys.
    settled
        Keys of the last records that are done with: True where their label came, False where they expired.
    counts
        Those since the first start.
    positions
        Where each partition of the labels' source continues.
    recent_dead
        What `DeadLetterRate.recent` gives for labels.
    label_next
        Whether it is the labels' turn.
    moments
        Of the numbers learned.
    n_lags
        How many of the last known targets are kept with a record that waits; 0 while no model wants any.
    known
        The last known targets, `n_lags` at most, the latest first; None until the first ones are given.
    undo
        How to undo decisions.
    now
        The time of the current chunk.

    """

    key: str
    target: str
    timeout: float
    limit: int
    _: KW_ONLY
    max_bytes: int = 2**28
    learn: bool = True
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.undo = UndoLog()
        self.pending: KeyedQueue[PendingEntry] = KeyedQueue(self.undo, lambda _, entry: entry.size)
        self.waiting: KeyedQueue[EarlyLabel] = KeyedQueue(self.undo, lambda key, early: size_of_label(key, early.y))
        self.settled: KeyedQueue[bool] = KeyedQueue(self.undo, lambda key, _: size_of_key(key))
        self.counts = LabelCounts()
        self.positions: dict[int, Position] = {}
        self.recent_dead: list[int] = []
        self.label_next = False
        self.moments = Moments()
        self.n_lags = 0
        self.known: tuple[Label, ...] | None = None
        self.set_clock(0.0)

    def set_clock(self, now: float) -> None:
        """Let the clock continue from here, in seconds."""
        self.now = now
        self._ahead = now - self.clock()

    def read_clock(self) -> float:
        """Bring `now` up to date, and give it."""
        # To the millisecond: every record that waits holds it. And never back, which rounding might do.
        self.now = max(self.now, round(self.clock() + self._ahead, 3))
        return self.now

    def keep_lags(self, n_lags: int, known: Sequence[Label]) -> None:
        """Keep the last `n_lags` known targets with each record; begin with these where none are known yet."""
        self.n_lags = n_lags
        if n_lags and self.known is None:
            self.known = tuple(known)

    @property
    def lags(self) -> tuple[Label, ...]:
        """The last known targets, as a record has them that is predicted now."""
        return (self.known or ())[: self.n_lags]

    def begin_chunk(self) -> LabelCounts:
        """Read the clock and give up what has waited too long, or is more than the limit.

        Returns
        -------
        given_up
            The counts.

        """
        self.undo.forget()
        given_up = LabelCounts()
        too_old = self.read_clock() - self.timeout
        while (oldest := self.pending.oldest()) and (oldest[1].arrived < too_old or self._too_many(self.pending)):
            given_up.expired += 1
            self._expire()
        while (first := self.waiting.oldest()) and (first[1].arrived < too_old or self._too_many(self.waiting)):
            given_up.unmatched += 1
            self.waiting.pop_oldest()
        self._forget_keys()
        for queue in (self.pending, self.waiting, self.settled):
            queue.tidy()
        self.undo.forget()
        return given_up

    def to_json(self) -> dict[str, int]:
        """Return the counts, and how many records and labels wait, by name."""
        return {**self.counts.to_json(), "pending": len(self.pending), "waiting": len(self.waiting)}

    def decide(self, record: Record, key: str | None, row: int) -> Decision:
        """Decide what a record or a label is, and change what waits as if the model took it.

        Parameters
        ----------
        record
            Without the key among its inputs.
        key
            The join key, None where the record has none.
        row
            How many events the chunk has before.

        """
        decision = Decision(record, key, self.undo.mark, row)
        if record.blank:
            return decision
        if record.fault is not None:
            decision.status, decision.fault = LabelStatus.DEAD, record.fault
        elif isinstance(record, LabelRecord):
            self._decide_label(decision)
        else:
            self._decide_record(decision)
        return decision

    def keep(self, decision: Decision) -> None:
        """Let the record of a decision wait for its label; the oldest makes room where too many wait."""
        assert decision.key is not None
        decision.status = LabelStatus.KEPT
        x, lags = decision.record.x, self.lags
        decision.pending = PendingEntry(self.now, size_of_record(decision.key, x, lags), x, lags=lags)
        self.pending.put(decision.key, decision.pending)
        while self._too_many(self.pending):
            decision.expired.append(self._expire())

    def pack(self, key: str) -> None:
        """Make bytes of a record that came in this chunk, if it still waits."""
        entry = self.pending.get(key)
        if entry is not None and entry.x is not None and entry.named is not None:
            entry.data = pack(PendingRecord(key, entry.arrived, entry.x, entry.named, entry.lags))
            entry.x = entry.named = None

    def written(self, early: EarlyLabel, key: str) -> bytes:
        """Write a label that waited, whose own text is gone, as a line of JSON that says the same."""
        return json.dumps({self.key: key, self.target: early.y}, ensure_ascii=False).encode()

    def _decide_record(self, decision: Decision) -> None:
        record, key = decision.record, decision.key
        lags = self.lags
        decision.rows.append((record.x, record.y, True, lags))
        if record.y is not None:
            decision.status, decision.y = LabelStatus.LABELED, record.y
            self._know(record.y)
            if key is not None and key not in self.pending and key not in self.settled:
                decision.early = self.waiting.pop(key)
                self._settle(key, True)
        elif key is None:
            decision.status = LabelStatus.KEYLESS
        elif key in self.pending or key in self.settled:
            decision.status = LabelStatus.REPEATED
        else:
            decision.early = self.waiting.pop(key)
            if decision.early is None:
                self.keep(decision)
                return
            decision.status, decision.y = LabelStatus.MET, decision.early.y
            if self.learn:
                decision.rows.append((record.x, decision.y, False, lags))
                self._know(decision.y)
            self._settle(key, True)

    def _decide_label(self, decision: Decision) -> None:
        record, key = decision.record, decision.key
        if key is None or record.y is None:
            decision.status, decision.fault = LabelStatus.DEAD, Fault("target", "there is no target")
            if key is None:
                detail = f"there is no {self.key} to find its record by, or it has too many digits for a number"
                decision.fault = Fault("key", detail)
            return
        entry = self.pending.pop(key)
        if entry is not None:
            decision.status, decision.pending, decision.y = LabelStatus.MATCHED, entry, record.y
            x = entry.x
            if entry.data is not None:
                _, _, x, decision.named, _ = unpack(entry.data)
            assert x is not None
            if self.learn:
                decision.rows.append((x, record.y, False, entry.lags))
                self._know(record.y)
            self._settle(key, True)
        elif key in self.settled:
            decision.status = LabelStatus.DOUBLED if self.settled.get(key) else LabelStatus.UNMATCHED
        elif key in self.waiting:
            decision.status = LabelStatus.DOUBLED
        else:
            decision.status = LabelStatus.EARLY
            self.waiting.put(key, EarlyLabel(record.y, self.now, record.position))
            while self._too_many(self.waiting):
                self.waiting.pop_oldest()
                decision.n_dropped += 1

    def _know(self, y: Label) -> None:
        """Note a target that is learned: from now on it is known."""
        if self.n_lags and self.learn:
            self.undo.note(partial(setattr, self, "known", self.known))
            self.known = (y, *(self.known or ()))[: self.n_lags]

    def _too_many(self, queue: KeyedQueue[Any]) -> bool:
        return len(queue) > self.limit or (queue.n_bytes > self.max_bytes and len(queue) > 1)

    def _expire(self) -> PendingEntry:
        key, entry = self.pending.pop_oldest()
        self._settle(key, False)
        return entry

    def _settle(self, key: str, labeled: bool) -> None:
        self.settled.put(key, labeled)
        self._forget_keys()

    def _forget_keys(self) -> None:
        while self._too_many(self.settled):
            self.settled.pop_oldest()
