"""The loop: poll, predict, learn, write, save, until the source or the operator ends it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from connectors.ports import Position, Record
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.stream import trial
from streamkernel.daemon.stream.chunks import ChunkProcessor, Processed
from streamkernel.daemon.stream.garbage import rare_collections
from streamkernel.daemon.stream.marker import Marker, Suspects
from streamkernel.daemon.stream.outbox import Outbox
from streamkernel.daemon.stream.pace import Pace

__all__ = ["Loop", "Observer", "TooManyDeadLettersError"]

_log = logging.getLogger(__name__)

# The most bytes of records between two looks at the clock and at signals: what a record costs goes with its length.
_MOST_BYTES = 2**20
# How long to wait for records before looking round for signals and checkpoints that are due.
_POLL_SECONDS = 0.2


class TooManyDeadLettersError(DaemonError):
    """So many records are unusable that the source is not what the configuration says."""


class Feed(Protocol):
    """Where the records come from: an open source, or two in turn."""

    def poll(self, max_records: int, timeout: float) -> list[Record]:
        """Hand out the next records; see `connectors.ports.Source.poll`."""

    @property
    def exhausted(self) -> bool:
        """Whether everything was handed out."""


class Observer(Protocol):
    """Who is told what the loop does."""

    def chunk(self, processed: Processed) -> None:
        """Take note of a chunk that is done."""

    def turn(self) -> None:
        """Take note that the loop is alive."""


class Keeper(Protocol):
    """Who writes the checkpoints."""

    def room(self, taken: int) -> int | None:
        """Give how many records may come before the next checkpoint; None: any number."""

    def begun(self) -> bool:
        """Write down where the source begins, where that is not known yet; False as long as that is not possible."""

    def save_when_due(self) -> None:
        """Write a checkpoint if it is time."""

    def save(self) -> bool:
        """Write a checkpoint now."""


class Loop:
    """Moves records from a source through the model.

    Parameters
    ----------
    feed
        Where the records come from.
    processor
        The model and the books.
    outbox
        The open outputs.
    positions
        Where each partition goes on; kept up to date.
    observer
        Told of each chunk and each turn.
    keeper
        Writes the checkpoints.
    marker, label_marker
        The write-ahead markers of records and late labels; None without a checkpoint directory.
    stopped
        Whether to stop.
    at_work
        Told when the model is given records, and when it is done with them.
    max_records
        How many records to take at most; None: no limit.

    """

    def __init__(
        self,
        feed: Feed,
        processor: ChunkProcessor,
        outbox: Outbox,
        positions: dict[int, Position],
        observer: Observer,
        keeper: Keeper,
        *,
        marker: Marker | None = None,
        label_marker: Marker | None = None,
        stopped: Callable[[], bool] = lambda: False,
        at_work: Callable[[bool], None] = lambda _: None,
        max_records: int | None = None,
    ) -> None:
        self._feed = feed
        self._processor = processor
        self._outbox = outbox
        self._positions = positions
        self._observer = observer
        self._keeper = keeper
        self._markers = {Record: marker, LabelRecord: label_marker}
        self._stopped = stopped
        self._at_work = at_work
        self._last = None if max_records is None else processor.account.consumed + max_records
        self._pace = Pace()

    def run(self) -> str:
        """Run to the end.

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
        for kind, marker in self._markers.items():
            if marker is not None and marker.suspects is not None:
                _log.warning(
                    "the process before this one died while learning the %d %s from position %d on: "
                    "they are learnt one by one",
                    marker.suspects.records,
                    "labels" if kind is LabelRecord else "records",
                    marker.suspects.first.offset,
                )
        with rare_collections():
            return self._turn_until_it_ends()

    def _turn_until_it_ends(self) -> str:
        while True:
            self._observer.turn()
            if self._stopped():
                return "stopped"
            limit = self._limit()
            if limit == 0:
                return "enough"
            if self._outbox.full:
                self._outbox.retry()
                time.sleep(_POLL_SECONDS)
                continue
            records = self._feed.poll(limit, _POLL_SECONDS)
            if not self._begun():
                return "stopped"
            if records:
                self._take(records)
            elif self._feed.exhausted:
                return "exhausted"
            else:
                self._outbox.move()
            self._keeper.save_when_due()

    def _begun(self) -> bool:
        """Wait until it is written down where the source begins; False where it is stopped before."""
        while not self._keeper.begun():
            self._observer.turn()
            self._outbox.move()
            if self._stopped():
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _limit(self) -> int:
        """Give how many records to take at once: no chunk reaches over a checkpoint or past `max_records`."""
        limit = self._pace.length
        room = self._keeper.room(self._processor.taken)
        if room is not None:
            limit = min(limit, room)
        return limit if self._last is None else min(limit, self._last - self._processor.account.consumed)

    def _take(self, records: Sequence[Record]) -> None:
        for part in _in_parts(records):
            if self._innocent or not any(map(self._suspects, part)):
                self._learn(part)
            else:
                self._take_one_by_one(part)
            if self._stopped():
                return

    def _take_one_by_one(self, records: Sequence[Record]) -> None:
        for record in records:
            suspects = self._suspects(record)
            if suspects is not None and suspects.records == 1:
                self._try(record)
            else:
                self._learn([record])
            if self._stopped():
                return

    @property
    def _innocent(self) -> bool:
        return all(marker is None or marker.suspects is None for marker in self._markers.values())

    def _suspects(self, record: Record) -> Suspects | None:
        """Give those among which a process died, if the record is one of them."""
        marker = self._markers[type(record)]
        suspects = marker.suspects if marker is not None else None
        return suspects if suspects is not None and suspects.hold(record.position) else None

    def _acquit_passed(self, kind: type[Record], following: Position | None) -> None:
        """Forget the suspects once the source has passed them, so that no later record is compared with them."""
        marker = self._markers[kind]
        if following is None or marker is None or marker.suspects is None:
            return
        end = marker.suspects.end
        if following[:2] == end[:2] and following.offset >= end.offset:
            marker.acquit()

    def _learn(self, records: Sequence[Record]) -> None:
        start = time.perf_counter()
        for kind, marker in self._markers.items():
            if marker is not None and (alike := [record for record in records if type(record) is kind]):
                marker.set(alike[0].position, alike[-1].next, len(alike))
        self._at_work(True)
        try:
            processed = self._processor.process(records, self._stopped)
        except Exception:
            # What is raised here would be raised again at every start: the record is looked for as one that kills.
            for marker in self._markers.values():
                if marker is not None:
                    marker.abandon()
            raise
        finally:
            self._at_work(False)
        for marker in self._markers.values():
            if marker is not None:
                marker.clear()
        self._pace.took(processed.taken, time.perf_counter() - start)
        self._book(processed)

    def _try(self, record: Record) -> None:
        """Deal with a record that was being learnt when the process died, once or more often."""
        what = "label" if isinstance(record, LabelRecord) else "record"
        marker = self._markers[type(record)]
        assert marker is not None
        assert marker.suspects is not None
        if marker.suspects.deaths < trial.DEATHS_BEFORE_TRIAL:
            self._learn([record])
            return
        _log.warning("the %s at position %d is tried in a process of its own", what, record.position.offset)
        deadly = trial.kills(self._processor.learner, self._processor.rows(record), self._stopped)
        if self._stopped():
            return
        marker.acquit()
        if not deadly:
            _log.warning("the %s at position %d did no harm and is learnt", what, record.position.offset)
            self._learn([record])
            return
        _log.error("the %s at position %d kills the process: it is a dead letter", what, record.position.offset)
        detail = f"the process died {trial.DEATHS_BEFORE_TRIAL} times over this {what}, and so did a child process"
        self._book(self._processor.condemn(record, "kills_process", detail))
        self._keeper.save()  # its verdict took four deaths: it must not be lost with the next one

    def _book(self, processed: Processed) -> None:
        if processed.next is not None:
            self._positions[processed.next.partition] = processed.next
        self._acquit_passed(Record, processed.next)
        self._acquit_passed(LabelRecord, None if processed.late is None else processed.late.next)
        self._observer.chunk(processed)
        self._outbox.write(
            {"predictions": processed.lines, "dead_letters": processed.letters},
            {"predictions": processed.line_origins, "dead_letters": processed.letter_origins},
        )
        crash.point("consumed", processed.taken)
        if self._processor.overrun:
            rate = self._processor.rate
            last = processed.letters[-1]["position"].get("source", "records")
            raise TooManyDeadLettersError(
                f"more than {rate.max_rate:.0%} of the last {rate.window:,} {last} were dead letters "
                f"(the last one: {processed.letters[-1]['reason']}, {processed.letters[-1]['detail']}): "
                "the source is not what the configuration says"
            )


def _in_parts(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cut a stretch so that no part has more than so many bytes, or more than one record."""
    sizes = [len(record.raw) for record in records]
    if sum(sizes) <= _MOST_BYTES:
        yield records
        return
    start = size = 0
    for place, more in enumerate(sizes):
        if size + more > _MOST_BYTES and place > start:
            yield records[start:place]
            start, size = place, 0
        size += more
    yield records[start:]
