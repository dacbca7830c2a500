"""The ledger of late labels: which record waits, which label waits, and what a record or a label that comes means.

Each decision is made as if the model took every record, and can be taken back where it did not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from connectors.ports import Position, Record
from streamkernel.daemon.base.accounts import LateAccount
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.late.held import Held, Journal
from streamkernel.daemon.late.moments import Moments
from streamkernel.daemon.late.packed import Kept, Packer
from streamkernel.daemon.late.sizes import size_of_key, size_of_label, size_of_record
from streamkernel.daemon.late.step import Early, Entry, Fate, Step

__all__ = ["Ledger"]


class Ledger:
    """Records that wait for labels, labels that wait for records, and the keys of those that found one another.

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
        The most bytes of each of them, as `late.sizes` counts; but one is kept, however large.
    learn
        False: labels judge predictions, and nothing is learnt.
    clock
        Gives seconds, and never goes back.

    Attributes
    ----------
    pending, waiting
        Records and labels by their keys.
    settled
        Keys of the last records that are done with: True where their label came, False where they expired.
    account
        The books.
    positions
        Where each partition of the labels' source goes on.
    recent_dead
        What `DeadLetterRate.recent` gives for labels.
    label_next
        Whether it is the labels' turn.
    moments
        Of the numbers learnt.
    packer
        Packs records.
    journal
        How to undo decisions.
    now
        The time of the current chunk.

    """

    def __init__(
        self,
        key: str,
        target: str,
        timeout: float,
        limit: int,
        *,
        max_bytes: int = 2**28,
        learn: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key = key
        self.target = target
        self.timeout = timeout
        self.limit = limit
        self.max_bytes = max_bytes
        self.learn = learn
        self.journal = Journal()
        self.pending: Held[Entry] = Held(self.journal, lambda _, entry: entry.size)
        self.waiting: Held[Early] = Held(self.journal, lambda key, early: size_of_label(key, early.y))
        self.settled: Held[bool] = Held(self.journal, lambda key, _: size_of_key(key))
        self.account = LateAccount()
        self.positions: dict[int, Position] = {}
        self.recent_dead: list[int] = []
        self.label_next = False
        self.moments = Moments()
        self.packer = Packer()
        self._clock = clock
        self.set_clock(0.0)

    def set_clock(self, now: float) -> None:
        """Let the clock go on from here, in seconds."""
        self.now = now
        self._ahead = now - self._clock()

    def read_clock(self) -> float:
        """Bring `now` up to date, and give it."""
        # To the millisecond: it stands in every record that waits. And never back, which rounding might do.
        self.now = max(self.now, round(self._clock() + self._ahead, 3))
        return self.now

    def begin_chunk(self) -> LateAccount:
        """Read the clock and give up what has waited too long, or is more than the limit.

        Returns
        -------
        given_up
            The counts.

        """
        self.journal.forget()
        given_up = LateAccount()
        too_old = self.read_clock() - self.timeout
        while (oldest := self.pending.oldest()) and (oldest[1].arrived < too_old or self._too_many(self.pending)):
            given_up.expired += 1
            self.release(self._expire())
        while (first := self.waiting.oldest()) and (first[1].arrived < too_old or self._too_many(self.waiting)):
            given_up.unmatched += 1
            self.waiting.pop_oldest()
        self._forget_keys()
        for held in (self.pending, self.waiting, self.settled):
            held.tidy()
        self.journal.forget()
        return given_up

    def to_json(self) -> dict[str, int]:
        """Give the account, and how many records and labels wait, by name."""
        return {**self.account.to_json(), "pending": len(self.pending), "waiting": len(self.waiting)}

    def decide(self, record: Record, key: str | None, row: int) -> Step:
        """Say what a record or a label is, and change the books as if the model took it.

        Parameters
        ----------
        record
            Without the key among its inputs.
        key
            Its key.
        row
            How many rows the model is given before.

        """
        step = Step(record, key, self.journal.mark, row)
        if record.blank:
            return step
        if record.fault is not None:
            step.fate, step.fault = Fate.DEAD, record.fault
        elif isinstance(record, LabelRecord):
            self._decide_label(step)
        else:
            self._decide_record(step)
        return step

    def keep(self, step: Step) -> None:
        """Let the record of a step wait for its label; the oldest makes room where too many wait."""
        assert step.key is not None
        step.fate = Fate.KEPT
        step.entry = Entry(self.now, size_of_record(step.key, step.record.x), step.record.x)
        self.pending.put(step.key, step.entry)
        while self._too_many(self.pending):
            step.expired.append(self._expire())

    def pack(self, key: str) -> None:
        """Make bytes of a record that came in this chunk, if it still waits."""
        entry = self.pending.get(key)
        if entry is not None and entry.x is not None and entry.said is not None:
            entry.data = self.packer.pack(Kept(key, entry.arrived, entry.x, entry.said))
            entry.x = entry.said = None

    def release(self, entry: Entry) -> None:
        """Forget what only a record that waits no longer has used."""
        if entry.data is not None:
            self.packer.release(entry.data)

    def written(self, early: Early, key: str) -> bytes:
        """Write a label that waited, whose own text is gone, as a line of JSON that says the same."""
        return json.dumps({self.key: key, self.target: early.y}, ensure_ascii=False).encode()

    def _decide_record(self, step: Step) -> None:
        record, key = step.record, step.key
        step.rows.append((record.x, record.y, True))
        if record.y is not None:
            step.fate, step.y = Fate.LABELLED, record.y
            if key is not None and key not in self.pending and key not in self.settled:
                step.early = self.waiting.pop(key)
                self._settle(key, True)
        elif key is None:
            step.fate = Fate.KEYLESS
        elif key in self.pending or key in self.settled:
            step.fate = Fate.REPEATED
        else:
            step.early = self.waiting.pop(key)
            if step.early is None:
                self.keep(step)
                return
            step.fate, step.y = Fate.MET, step.early.y
            if self.learn:
                step.rows.append((record.x, step.y, False))
            self._settle(key, True)

    def _decide_label(self, step: Step) -> None:
        record, key = step.record, step.key
        if key is None or record.y is None:
            step.fate = Fate.DEAD
            step.fault = ("key", self._no_key) if key is None else ("target", "there is no target")
            return
        entry = self.pending.pop(key)
        if entry is not None:
            step.fate, step.entry, step.y = Fate.MATCHED, entry, record.y
            x = entry.x
            if entry.data is not None:
                _, _, x, step.said = self.packer.unpack(entry.data)
            assert x is not None
            if self.learn:
                step.rows.append((x, record.y, False))
            self._settle(key, True)
        elif key in self.settled:
            step.fate = Fate.DOUBLED if self.settled.get(key) else Fate.UNMATCHED
        elif key in self.waiting:
            step.fate = Fate.DOUBLED
        else:
            step.fate = Fate.EARLY
            self.waiting.put(key, Early(record.y, self.now, record.position))
            while self._too_many(self.waiting):
                self.waiting.pop_oldest()
                step.dropped += 1

    @property
    def _no_key(self) -> str:
        return f"there is no {self.key} to know its record by, or it has more digits than a number can hold"

    def _too_many(self, held: Held[Any]) -> bool:
        return len(held) > self.limit or (held.n_bytes > self.max_bytes and len(held) > 1)

    def _expire(self) -> Entry:
        key, entry = self.pending.pop_oldest()
        self._settle(key, False)
        return entry

    def _settle(self, key: str, labelled: bool) -> None:
        self.settled.put(key, labelled)
        self._forget_keys()

    def _forget_keys(self) -> None:
        while self._too_many(self.settled):
            self.settled.pop_oldest()
