"""The loop: poll, predict, learn, write, save, until the source or the operator ends it."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamkernel.connectors.ports import Position, Record, RecordColumns
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.stream import isolation
from streamkernel.daemon.stream.ending import FIRST, TooManyDeadLettersError, all_dead, bad_start, begins_well
from streamkernel.daemon.stream.in_flight import InFlight, InFlightMarkers
from streamkernel.daemon.stream.loop_time import AdaptiveBatchSize, LoopTime
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.sinks import Sinks

__all__ = ["MOST_BYTES", "POLL_SECONDS", "Checkpoints", "Loop", "Observer", "rare_collections"]

_log = logging.getLogger(__name__)

# The most bytes of records between two looks at the clock and at signals: what a record costs goes with its length.
MOST_BYTES = 2**20
# How long to wait for records before looking round for signals and checkpoints that are due.
POLL_SECONDS = 0.2
# Python's 700 is less than the objects of one chunk of records, all of which are freed without a collection. Each
# chunk would be searched, and the whole process, compiler and libraries, every ten thousand records or so.
_NEW_OBJECTS = 50_000


class Feed(Protocol):
    """A feed of records: an open source, or two in turn."""

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Hand out the next records; see `streamkernel.connectors.ports.Source.poll`."""

    @property
    def exhausted(self) -> bool:
        """Whether everything was handed out."""


class Observer(Protocol):
    """An observer of the loop."""

    def chunk(self, batch: RecordBatch) -> None:
        """Note a batch that is done."""

    def turn(self) -> None:
        """Note that the loop is alive."""


class Checkpoints:
    """The checkpoints of a run, as the loop asks for them; these save nothing."""

    def room(self, taken: int) -> int | None:  # noqa: ARG002
        """Return how many records may come before the next checkpoint; None: any number."""
        return None

    def save_start(self) -> bool:
        """Write down where the source begins, where that is not known yet; False as long as that is not possible."""
        return True

    def save_when_due(self) -> None:
        """Write a checkpoint if it is time."""

    def save(self) -> bool:
        """Write a checkpoint now; False where that is not possible."""
        return False


@dataclass
class Loop:
    """Moves records from a source through the model into the outputs.

    Parameters
    ----------
    feed
        Where the records come from.
    processor
        The model and the counts.
    sinks
        The open outputs.
    positions
        Where each partition continues; kept up to date.
    observer
        Gets each chunk and each turn.
    checkpoints
        Writes the checkpoints.
    markers
        The write-ahead markers of records and late labels; none without a checkpoint directory.
    stopped
        Whether to stop.
    at_work
        Called with True when the model is given records, with False when it is done with them.
    max_records
        How many records to take at most; None: no limit.
    times
        Measures what the time goes into.
    watches_start
        Whether it is looked at whether the first records are all dead letters.

    """

    feed: Feed
    processor: Processor
    sinks: Sinks
    positions: dict[int, Position]
    observer: Observer
    checkpoints: Checkpoints
    markers: InFlightMarkers = field(default_factory=lambda: InFlightMarkers({}))
    stopped: Callable[[], bool] = lambda: False
    at_work: Callable[[bool], None] = lambda _: None
    max_records: int | None = None
    times: LoopTime = field(default_factory=LoopTime)
    watches_start: bool = True

    def __post_init__(self) -> None:
        self._last = None if self.max_records is None else self.processor.counts.consumed + self.max_records
        self._batch_size = AdaptiveBatchSize()
        self._read_at = 0.0

    def run(self) -> str:
        """Run until the source is exhausted, enough records were taken, or a stop is asked for.

        Returns
        -------
        why
            ``"stopped"``, ``"enough"`` (`max_records`) or ``"exhausted"``.

        Raises
        ------
        TooManyDeadLettersError
            When there are more dead letters than the rate bears.
        ConnectorError
            When the source or a sink fails.

        """
        self.markers.warn()
        with rare_collections():
            return self._turn_until_it_ends()

    def _turn_until_it_ends(self) -> str:
        while True:
            self.observer.turn()
            if self.stopped():
                return "stopped"
            limit = self._limit()
            if limit == 0:
                return "enough"
            self.times.begin()
            if self.sinks.full:
                self.sinks.retry()
                time.sleep(POLL_SECONDS)
                self.times.end("sinks")
                continue
            records = self.feed.poll(limit, self.sinks.pause(POLL_SECONDS))
            self._read_at = self.times.end("source")
            if not self.checkpoints.save_start() and not self._wait_for_start():
                return "stopped"
            self.times.end("checkpoints")
            if records:
                self._take(records)
            elif self.feed.exhausted:
                return "exhausted"
            else:
                self.sinks.move()
                self.times.end("sinks")
            if not self._may_begin_badly():
                self.checkpoints.save_when_due()
            self.times.end("checkpoints")

    def _may_begin_badly(self) -> bool:
        """Return whether all records so far are dead: none is saved, so that they come again once that is mended."""
        self.watches_start = self.watches_start and not begins_well(self.processor)
        return self.watches_start and self.processor.rate.stops_at_start and all_dead(self.processor)

    def _wait_for_start(self) -> bool:
        """Wait until it is written down where the source begins; False where it is stopped before."""
        while True:
            self.times.end("checkpoints")
            self.observer.turn()
            self.times.begin()
            self.sinks.move()
            self.times.end("sinks")
            if self.stopped():
                return False
            time.sleep(POLL_SECONDS)
            if self.checkpoints.save_start():
                return True

    def _limit(self) -> int:
        """Return how many records to take at once: no chunk reaches over a checkpoint or past `max_records`."""
        limit = self._batch_size.length
        counts = self.processor.counts
        if self.watches_start and not counts.predicted and counts.dead < FIRST:
            limit = min(limit, FIRST - counts.dead)  # whether the start is bad depends on no chunk
        room = self.checkpoints.room(self.processor.taken)
        if room is not None:
            limit = min(limit, room)
        return limit if self._last is None else min(limit, self._last - self.processor.counts.consumed)

    def _take(self, records: Sequence[Record]) -> None:
        for part in _in_parts(records):
            # Without records that a process died with, as nearly always, none of these is looked at.
            one_by_one = self.markers.any_interrupted and any(map(self.markers.interrupted_at, part))
            for some in [[record] for record in part] if one_by_one else [part]:
                interrupted = self.markers.interrupted_at(some[0]) if one_by_one else None
                if interrupted is not None and interrupted.records == 1:
                    self._retry(some[0], interrupted)
                else:
                    self._learn(some)
                if self.stopped():
                    return

    def _learn(self, records: Sequence[Record]) -> None:
        start = time.perf_counter()
        self.markers.set(records)
        self.times.begin()
        self.at_work(True)
        try:
            done = list(self.processor.process(records, self.stopped))
        except Exception:
            # What is raised here would be raised again at every start: the record is looked for as one that kills.
            self.markers.abandon()
            raise
        finally:
            self.at_work(False)
        self.times.learned(self._read_at, self.times.end("model"))
        self.markers.clear()
        self._batch_size.took(sum(batch.taken for batch in done), time.perf_counter() - start)
        self._deliver(done)

    def _retry(self, record: Record, interrupted: InFlight) -> None:
        """Deal with a record that was being learned when the process died, once or more often."""
        what = "label" if isinstance(record, LabelRecord) else "record"
        if interrupted.deaths < isolation.DEATHS_BEFORE_ISOLATION:
            self._learn([record])
            return
        _log.warning("the %s at position %d is tried in a child process", what, record.position.offset)
        self.times.begin()
        deadly = self.processor.kills(record, self.stopped)
        self.times.end("model")
        if self.stopped():
            return
        self.markers.forget(type(record))
        if not deadly:
            _log.warning("the %s at position %d did no harm and is learned", what, record.position.offset)
            self._learn([record])
            if self.processor.challengers.statuses:  # one of them may be disabled since
                self.checkpoints.save()
                self.times.end("checkpoints")
            return
        _log.error("the %s at position %d kills the process: it is a dead letter", what, record.position.offset)
        detail = (
            f"the process died {isolation.DEATHS_BEFORE_ISOLATION} times on this {what}, and so did a child process"
        )
        self._deliver([self.processor.quarantine(record, "kills_process", detail)])
        self.checkpoints.save()  # this took four deaths: it must not be lost with the next one
        self.times.end("checkpoints")

    def _deliver(self, batches: Sequence[RecordBatch]) -> None:
        """Move the positions on, hand lines and dead letters to the outputs, then judge all of the letters."""
        for batch in batches:
            if batch.next is not None:
                self.positions[batch.next.partition] = batch.next
            if self.markers.any_interrupted:
                self.markers.passed(Record, batch.next)
                self.markers.passed(LabelRecord, None if batch.late is None else batch.late.next)
            self.observer.chunk(batch)
            self.times.begin()
            lines, records = self.processor.lines(batch), batch.predicted
            starts = records.starts if isinstance(records, RecordColumns) else [record.position for record in records]
            self.sinks.write(
                {"predictions": lines, "dead_letters": batch.letters},
                {"predictions": starts, "dead_letters": batch.letter_origins},
                self._read_at,
            )
            self.times.end("sinks")
            crash.point("consumed", batch.taken)
        if letters := [letter for batch in batches for letter in batch.letters]:
            self._judge(letters)

    def _judge(self, letters: Sequence[dict[str, Any]]) -> None:
        """Raise where there are too many dead letters, the last ones among them."""
        processor, rate, last = self.processor, self.processor.rate, letters[-1]
        why = bad_start(processor) if self.watches_start else None
        if why is None and processor.overrun:
            kind = last["position"].get("source", "records")
            why = f"more than {rate.max_rate:.0%} of the last {rate.window:,} {kind} were dead letters"
        if why is None:
            return
        said = f"{why} (the last one: {last['reason']}, {last['detail']}): the source does not match the configuration"
        if processor.overrun:
            raise TooManyDeadLettersError(said, has_example=True)
        if rate.stops_at_start:
            said = f"{said}; dead_letters.at_start: go_on continues anyway"
            raise TooManyDeadLettersError(said, has_example=True)
        self.watches_start = False
        _log.warning("%s; the run continues anyway", said)


def _in_parts(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cut a chunk so that no part has more bytes than allowed, or more than one record."""
    if isinstance(records, RecordColumns):
        sizes = records.raws.sizes.tolist()
    else:
        sizes = [len(record.raw) for record in records]
    if sum(sizes) <= MOST_BYTES:
        yield records
        return
    start = size = 0
    for place, more in enumerate(sizes):
        if size + more > MOST_BYTES and place > start:
            yield records[start:place]
            start, size = place, 0
        size += more
    yield records[start:]


@contextmanager
def rare_collections() -> Iterator[None]:
    """Search for cyclic garbage only when tens of thousands of new objects are alive, as long as this lasts.

    A process in which somebody turned the search off is left as it is. One in which it is rarer has searched little so
    far: what is there by now, compiled code and libraries most of all, is not looked at again.

    Examples
    --------
    >>> before = gc.get_threshold()
    >>> with rare_collections():
    ...     gc.get_threshold()[0]
    50000
    >>> gc.get_threshold() == before
    True

    """
    before = gc.get_threshold()
    if before[0] > _NEW_OBJECTS:
        gc.freeze()
    if before[0] > 0:
        gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
