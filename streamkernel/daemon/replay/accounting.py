"""The accounting of a replay: a record that was counted as a dead letter is counted as what becomes of it now."""

from __future__ import annotations

from collections import deque

from streamkernel.connectors.ports import Position
from streamkernel.daemon.replay.feed import ReplayedRecord, is_replayed, place_of
from streamkernel.daemon.replay.report import ReplayReport
from streamkernel.daemon.run_state.replayed import LetterPlace
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["ReplayAccounting"]


class ReplayAccounting:
    """Observes the loop of a replay, and keeps counts, rates and turns as if the records were still read once.

    The processor counts each record of a letter as taken, and as dead where it is still dead. It was counted as both
    when the letter was written, which is taken back here.

    Parameters
    ----------
    processor, start
        Those of the run; the letters that were replayed are added to the latter.
    report
        Takes what becomes of the letters.

    Attributes
    ----------
    changed
        Whether there is something to be saved.

    """

    def __init__(self, processor: Processor, start: Start, report: ReplayReport) -> None:
        self._processor = processor
        self._start = start
        self._report = report
        self._handed: deque[ReplayedRecord] = deque()
        self._labels: set[LetterPlace] = set()  # those replayed now
        join = start.join
        self._label_next = join is not None and join.label_next
        self._recent = [] if join is None else list(join.recent_dead)
        self.changed = False

    def hand(self, replayed: ReplayedRecord) -> None:
        """Note a record that is handed to the loop."""
        self._handed.append(replayed)

    def chunk(self, done: RecordBatch) -> None:
        """Settle the records of a chunk; see `streamkernel.daemon.stream.loop.Observer`."""
        self._take_back(done)
        letters = dict(zip(done.letter_origins, done.letters, strict=True))
        for _ in range(done.taken):
            replayed = self._handed.popleft()
            letter = letters.pop(replayed.origin, None)
            if letter is None:
                self._settle(replayed.letter.place)
            else:
                self._report.add_still_dead(f"line {replayed.letter.line}", letter["reason"], letter["detail"])
        for origin, letter in letters.items():
            if is_replayed(origin):
                self._take_back_label(origin, letter["reason"], letter["detail"])

    def turn(self) -> None:
        """Do nothing: nobody watches a replay."""

    def _settle(self, place: LetterPlace) -> None:
        self._start.replayed.add(place)
        self._report.n_replayed += 1
        if place.source == "labels":
            self._labels.add(place)
        self.changed = True

    def _take_back_label(self, origin: Position, reason: str, detail: str) -> None:
        """Take back that a label was replayed: it waited, and the model refused it when its record came."""
        place = place_of(origin)
        self._start.replayed.discard(place)
        self._report.n_replayed -= place in self._labels
        self._labels.discard(place)
        self._report.add_still_dead(f"the label at offset {place.offset:,}", reason, detail)

    def _take_back(self, done: RecordBatch) -> None:
        processor, join = self._processor, self._start.join
        processor.counts.consumed -= done.counts.consumed
        processor.counts.dead -= done.counts.consumed
        rate = processor.rate
        processor.rate = DeadLetterRate(rate.max_rate, rate.window, self._start.recent_dead)
        processor.overrun = False
        if join is not None and done.late is not None:
            join.counts.taken -= done.late.counts.taken
            join.counts.dead -= done.late.counts.taken
            join.recent_dead = list(self._recent)
            join.label_next = self._label_next
