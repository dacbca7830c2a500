"""The loop: poll, predict, learn, write, save, until the source or the operator ends it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from connectors.ports import Position, Record, Source
from streamkernel.daemon.checkpoints import crash
from streamkernel.daemon.stream import trial
from streamkernel.daemon.stream.chunks import ChunkProcessor, Processed
from streamkernel.daemon.stream.garbage import rare_collections
from streamkernel.daemon.stream.marker import Marker
from streamkernel.daemon.stream.outbox import Outbox
from streamkernel.daemon.stream.pace import Pace

__all__ = ["DaemonError", "Loop", "Observer", "TooManyDeadLettersError"]

_log = logging.getLogger(__name__)

# How long to wait for records before looking round for signals and checkpoints that are due.
_POLL_SECONDS = 0.2


class DaemonError(Exception):
    """The daemon cannot go on; the message is one sentence for the user."""


class TooManyDeadLettersError(DaemonError):
    """So many records are unusable that the source is not what the configuration says."""


class Observer(Protocol):
    """Who is told what the loop does."""

    def chunk(self, processed: Processed) -> None:
        """Take note of a chunk that is done."""

    def turn(self) -> None:
        """Take note that the loop is alive."""


class Keeper(Protocol):
    """Who writes the checkpoints."""

    def room(self, consumed: int) -> int | None:
        """Give how many records may come before the next checkpoint; None: any number."""

    def save_when_due(self) -> None:
        """Write a checkpoint if it is time."""

    def save(self) -> bool:
        """Write a checkpoint now."""


class Loop:
    """Moves records from a source through the model.

    Parameters
    ----------
    source
        Open.
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
    marker
        The write-ahead marker; None without a checkpoint directory.
    stopped
        Whether to stop.
    max_records
        How many records to take at most; None: no limit.

    """

    def __init__(
        self,
        source: Source,
        processor: ChunkProcessor,
        outbox: Outbox,
        positions: dict[int, Position],
        observer: Observer,
        keeper: Keeper,
        *,
        marker: Marker | None = None,
        stopped: Callable[[], bool] = lambda: False,
        max_records: int | None = None,
    ) -> None:
        self._source = source
        self._processor = processor
        self._outbox = outbox
        self._positions = positions
        self._observer = observer
        self._keeper = keeper
        self._marker = marker
        self._stopped = stopped
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
        if self._marker is not None and self._marker.suspects is not None:
            where = self._marker.suspects
            _log.warning(
                "the process before this one died while learning the %d records from position %d on: "
                "they are learnt one by one",
                where.records,
                where.first.offset,
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
            records = self._source.poll(limit, _POLL_SECONDS)
            if records:
                self._take(records)
            elif self._source.exhausted:
                return "exhausted"
            self._keeper.save_when_due()

    def _limit(self) -> int:
        """Give how many records to take at once: no chunk reaches over a checkpoint or past `max_records`."""
        consumed = self._processor.account.consumed
        limit = self._pace.length
        room = self._keeper.room(consumed)
        if room is not None:
            limit = min(limit, room)
        return limit if self._last is None else min(limit, self._last - consumed)

    def _take(self, records: Sequence[Record]) -> None:
        suspects = self._marker.suspects if self._marker is not None else None
        if suspects is None or not any(suspects.hold(record.position) for record in records):
            self._learn(records)
            return
        for record in records:
            if suspects.hold(record.position) and suspects.records == 1:
                self._try(record)
            else:
                self._learn([record])
            if self._stopped():
                return

    def _learn(self, records: Sequence[Record]) -> None:
        start = time.perf_counter()
        if self._marker is not None:
            self._marker.set(records[0].position, records[-1].next, len(records))
        processed = self._processor.process(records, self._stopped)
        if self._marker is not None:
            self._marker.clear()
        self._pace.took(processed.account.consumed, time.perf_counter() - start)
        self._book(processed)

    def _try(self, record: Record) -> None:
        """Deal with a record that was being learnt when the process died, once or more often."""
        marker = self._marker
        assert marker is not None
        assert marker.suspects is not None
        if marker.suspects.deaths < trial.DEATHS_BEFORE_TRIAL:
            self._learn([record])
            return
        _log.warning("the record at position %d is tried in a process of its own", record.position.offset)
        deadly = trial.kills(self._processor.learner, record, self._stopped)
        if self._stopped():
            return
        marker.acquit()
        if not deadly:
            _log.warning("the record at position %d did no harm and is learnt", record.position.offset)
            self._learn([record])
            return
        _log.error("the record at position %d kills the process: it is a dead letter", record.position.offset)
        detail = f"the process died {trial.DEATHS_BEFORE_TRIAL} times over this record, and so did a child process"
        self._book(self._processor.condemn(record, "kills_process", detail))
        self._keeper.save()  # its verdict took four deaths: it must not be lost with the next one

    def _book(self, processed: Processed) -> None:
        if processed.next is not None:
            self._positions[processed.next.partition] = processed.next
        self._observer.chunk(processed)
        self._outbox.write({"predictions": processed.lines, "dead_letters": processed.letters})
        crash.point("consumed", processed.account.consumed)
        if self._processor.overrun:
            rate = self._processor.rate
            raise TooManyDeadLettersError(
                f"more than {rate.max_rate:.0%} of the last {rate.window:,} records were dead letters "
                f"(the last one: {processed.letters[-1]['reason']}, {processed.letters[-1]['detail']}): "
                "the source is not what the configuration says"
            )
