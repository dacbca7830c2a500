"""Polls a topic on a thread of its own, so that nothing a network does can hold the daemon up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.base.fetched import Unreadable
from streamkernel.connectors.kafka.base.outage import Outage
from streamkernel.connectors.kafka.base.topic import Bounds, KafkaTopic, OutOfRange
from streamkernel.connectors.kafka.reading.buffers import Buffers, PartitionBatch
from streamkernel.connectors.kafka.reading.open_transactions import OpenTransactions
from streamkernel.connectors.kafka.reading.starting_offsets import StartingOffsets
from streamkernel.connectors.ports import ConnectorError, SourceError

__all__ = ["TopicReader"]

_log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
LOOK_SECONDS = 0.5
# While enough waits and the topic is not polled, its end is asked for this often.
END_SECONDS = 5.0
# A cluster whose brokers all moved is found again by its first addresses, not by those the client knows.
ANEW_SECONDS = 60.0
LONGEST_PAUSE = 2.0


class TopicReader:
    """Fills buffers with the messages of a topic, through every failure that may pass.

    Parameters
    ----------
    place
        The name of the topic in a log line.
    connect
        Makes the topic, given how many attempts failed before.
    starting
        Finds the offset at which reading each partition begins.
    skip_gaps
        Whether to continue where retention removed messages before they were read.

    Attributes
    ----------
    buffers
        The messages that were read; None until the first connection.
    begins
        By partition, the offset at which reading began, and the end of the partition at that moment.
    failure
        Why reading ended; None while it continues.

    """

    def __init__(
        self, place: str, connect: Callable[[int], KafkaTopic], starting: StartingOffsets, skip_gaps: bool
    ) -> None:
        self.buffers: Buffers | None = None
        self.begins: Mapping[int, tuple[int, int]] = {}
        self.failure: SourceError | None = None
        self._outage = Outage(_log, place)
        self._transactions = OpenTransactions(place)
        self._place = place
        self._connect = connect
        self._starting = starting
        self._skip_gaps = skip_gaps
        self._looked = self._polled = 0.0
        self._known: frozenset[int] = frozenset()
        self._settled = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-reader", daemon=True)

    @property
    def health_problem(self) -> str | None:
        """Why records do not come for now, None where they may."""
        reason = self._outage.reason
        return self._transactions.health_problem if reason is None else f"no broker answers ({reason})"

    def start(self, seconds: float) -> None:
        """Begin to read, and wait until it is known whether that works, but no longer than some seconds."""
        self._thread.start()
        self._settled.wait(seconds)

    def stop(self, seconds: float) -> None:
        """Stop reading; a thread that waits for the network longer than that ends later."""
        self._stopping.set()
        if self.buffers is not None:
            self.buffers.wake()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        attempt = 0
        while not self._stopping.is_set():
            try:
                topic = self._connect(attempt)
                try:
                    buffers = self._start(topic)
                    attempt = 0
                    self._outage.end()
                    self._read(topic, buffers)
                finally:
                    topic.close()
            except (Unreachable, ConnectorError) as error:
                if isinstance(error, SourceError) or (self.buffers is None and isinstance(error, ConnectorError)):
                    self._fail(str(error))
                    return
                if not self._stopping.is_set():
                    self._down(str(error))
                attempt += 1
                self._stopping.wait(min(LONGEST_PAUSE, 0.2 * attempt))
            except Exception as error:  # whatever it is, the daemon must hear of it, and not wait forever
                _log.debug("the full traceback", exc_info=error)
                self._fail(f"the client of Kafka failed: {type(error).__name__}: {error}")
                return

    def _start(self, topic: KafkaTopic) -> Buffers:
        """Begin, or continue after a lost connection, and return the buffers."""
        if self.buffers is not None:
            if topic.identity != self._starting.stream:
                raise SourceError("the topic was deleted and created again, or this is another cluster")
            self._assign(topic, self.buffers, self.buffers.reached())
            return self.buffers
        buffers, offsets = Buffers(), self._starting.find(topic)
        self._known = topic.partitions
        bounds = self._assign(topic, buffers, offsets)
        self.begins = {one: (offset, bounds[one].end) for one, offset in offsets.items()}
        self.buffers = buffers
        self._settled.set()
        return buffers

    def _assign(self, topic: KafkaTopic, buffers: Buffers, offsets: Mapping[int, int]) -> Mapping[int, Bounds]:
        bounds = topic.bounds(offsets)
        offsets = {one: self._fitted(topic, one, offset, bounds[one]) for one, offset in offsets.items()}
        topic.add(offsets)
        for partition, offset in sorted(offsets.items()):
            buffers.note(partition, offset, bounds[partition].end)
        return bounds

    def _grow(self, topic: KafkaTopic, buffers: Buffers) -> None:
        """Read the partitions that were added to the topic, where they are wanted."""
        new = topic.partitions - self._known
        offsets = self._starting.add(new) if new else {}
        if offsets:
            self._assign(topic, buffers, offsets)
            _log.info(
                "%s has new partitions, which are read from their first record on: %s",
                *(self._place, ", ".join(map(str, sorted(offsets)))),
            )
        self._known |= new

    def _read(self, topic: KafkaTopic, buffers: Buffers) -> None:
        waiting_since = time.monotonic()
        while not self._stopping.is_set():
            if not buffers.wait_for_room(POLL_SECONDS) or self._poll(topic, buffers):
                waiting_since = time.monotonic()
            self._look(topic, buffers, waiting_since)

    def _poll(self, topic: KafkaTopic, buffers: Buffers) -> bool:
        self._polled = time.monotonic()
        try:
            found = topic.poll(POLL_SECONDS)
        except Unreadable as damage:
            _log.error(
                "%s, partition %d: offsets %d to %d cannot be read and are dead letters: %s",
                *(self._place, damage.partition, damage.first, damage.end - 1, damage),
            )
            buffers.put(PartitionBatch(damage.partition, damage.first, damage.end, None, str(damage)))
            topic.seek(damage.partition, damage.end)
            return True
        except OutOfRange as error:
            # The offset may be there, and the topic may be another one.
            topic.refresh()
            topic.verify()
            partition = error.partition
            offset = self._fitted(topic, partition, buffers.reached()[partition], topic.bounds([partition])[partition])
            topic.seek(partition, offset)
            buffers.note(partition, offset, None)
            return True
        if found:
            self._outage.end()
        for partition, messages in found.items():
            batch = PartitionBatch.of(partition, messages)
            buffers.put(batch)
            buffers.note(partition, batch.end, topic.end(partition))
        return bool(found)

    def _look(self, topic: KafkaTopic, buffers: Buffers, waiting_since: float) -> None:
        """Check each half second that broker and topic are there, and where the partitions end."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        topic.verify()
        silent = now - max(topic.heard(), waiting_since)
        if silent > ANEW_SECONDS:
            raise Unreachable(topic.failure())
        if silent > topic.patience:
            self._down(topic.failure())
            return
        self._outage.end()
        self._grow(topic, buffers)
        for partition in buffers.partitions:
            # Also where nothing was read: the marks of a transaction are no messages.
            reached, end = topic.reached(partition), topic.end(partition)
            buffers.note(partition, reached, end)
            self._transactions.look(topic, partition, reached, end)
        if now - self._polled > END_SECONDS:
            self._polled = now
            for partition, bounds in topic.bounds(buffers.partitions).items():
                buffers.note(partition, topic.reached(partition), bounds.end)

    def _fitted(self, topic: KafkaTopic, partition: int, offset: int, bounds: Bounds) -> int:
        """Return the offset to continue at, which is the given one unless retention has removed it."""
        if offset > bounds.end:
            end = topic.high_watermark(partition)
            if offset <= end:
                self._transactions.found(partition, offset, bounds.end)
                return offset
            raise SourceError(
                f"partition {partition} ends at offset {end}, before offset {offset}, where reading continues: the "
                "topic lost records, or was replaced. Restore it, or start over with --fresh"
            )
        if offset >= bounds.first:
            return offset
        gap = (
            f"partition {partition}: offsets {offset} to {bounds.first - 1} ({bounds.first - offset:,} of them) were "
            "removed by retention before they were read"
        )
        if not self._skip_gaps:
            raise SourceError(f"{gap}: set on_gap: skip to continue without them, or start over with --fresh")
        _log.error("%s, %s: they are skipped (on_gap: skip)", self._place, gap)
        return bounds.first

    def _down(self, reason: str) -> None:
        self._outage.begin(reason)
        self._settled.set()

    def _fail(self, reason: str) -> None:
        self.failure = SourceError(f"{self._place}: {reason}")
        self._settled.set()
        if self.buffers is not None:
            self.buffers.wake()
