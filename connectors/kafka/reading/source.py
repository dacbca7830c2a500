"""Records from a topic of Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.kafka.base.options import client_settings
from streamkernel.connectors.kafka.base.topic import ConnectTopic, KafkaTopic
from streamkernel.connectors.kafka.reading.buffers import Buffers, PartitionBatch
from streamkernel.connectors.kafka.reading.committer import OffsetCommitter
from streamkernel.connectors.kafka.reading.message_decoder import Include, MessageDecoder
from streamkernel.connectors.kafka.reading.order import ArrivalOrder, LoggedOrder
from streamkernel.connectors.kafka.reading.order_log import OrderLog
from streamkernel.connectors.kafka.reading.reader import TopicReader
from streamkernel.connectors.kafka.reading.starting_offsets import StartingOffsets
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.pass_through_reader import PassThrough
from streamkernel.connectors.ports import ColumnUse, ConnectorError, Position, Record, Source, SourceError
from streamkernel.connectors.registry.lookup import RegistryLookup
from streamkernel.connectors.registry.objects import FramedObjects, PayloadDecoder, check_format, decoder_lookup
from streamkernel.connectors.registry.settings import RegistrySettings, ValueFormat
from streamkernel.connectors.target_columns import Target

__all__ = ["KafkaSource"]

_DEFAULTS: Mapping[str, Any] = {
    "fetch_max_bytes": 2**24,
    # What is learned is not forgotten: a record of an aborted transaction must not be learned at all.
    "isolation_level": "read_committed",
}
OPEN_SECONDS = 5.0
_CLOSE_SECONDS = 2.0


class KafkaSource(Source):
    """Read a topic, each message a JSON object in UTF-8, or what a schema registry has the schema of.

    See `JsonObjects` and `FramedObjects`. The source waits for a registry as it waits for a broker, and some time for a
    schema that the registry does not know.

    The checkpoint alone says where to continue: the partitions are assigned, not subscribed to, and the offsets of a
    consumer group are never read. A thread does everything the network may hold up. `open` and `poll` return in time;
    while no broker answers, `health_problem` says so.

    A poll hands out records of one partition, in turns. In a backlog a turn may be as long as one fetch of a partition
    (the option ``max_partition_fetch_bytes``, 1 MiB). Offsets without a message are skipped: compaction removes some,
    and transactions leave marks. The position after a record is its offset + 1. A message that cannot be read is a
    record with the fault ``"corrupt"``; a tombstone (null) is a blank record.

    Partitions that are added to the topic are read too, each from offset 0, unless `partitions` lists others: messages
    that retention removed before are a gap. They are noticed with the next answer about the topic (the option
    ``metadata_max_age_ms``, 10 s). A partition that is left out of `partitions` keeps its place in the checkpoint.

    Parameters
    ----------
    topic
        Its name; a topic that is not there is never made.
    bootstrap_servers
        ``"host:port"``, several of them with commas between, or a list.
    partitions
        ``"all"``, or the numbers of those to read.
    start
        Where the first run begins: ``"earliest"``, with the first message that is still there, or ``"latest"``, with
        the first one to come.
    on_gap
        What to do where retention removed messages before they were read: ``"stop"``, or ``"skip"`` them. Both say
        exactly which.
    include
        Of ``"key"``, ``"headers"`` and ``"timestamp"``, what becomes inputs too; see `MessageDecoder`.
    target
        The key of the target; None: no target, every record is unlabeled.
    target_type
        ``"str"``, ``"int"``, ``"bool"`` or ``"float"``; see `streamkernel.connectors.decode.TargetDecoder`.
    value_format
        ``"json"``, or with a registry ``"avro"``, ``"json_schema"`` or ``"protobuf"``.
    registry
        The schema registry of the values.
    options
        Settings of kafka-python by its own names, such as ``security_protocol``; with ``group_id``, the offsets of each
        checkpoint are committed to that group, for the tools that watch groups. ``isolation_level`` is
        ``"read_committed"`` by default: a record of a transaction comes once that is committed, and never if it is
        aborted.
    order_log
        Where the order in which several partitions are handed out is written down, so that a restart repeats it; None:
        a restart takes what is not in the checkpoint as it comes.
    checkpoints_kept
        How many checkpoints a restart may go back.
    max_record_bytes
        The longest value, in bytes; a longer one is a fault.
    max_string
        The most characters of a name or a string value; more is a fault.
    inputs
        Which keys are inputs, what `include` adds among them, and how they are read; None: all but the target, each as
        it is.
    connect
        Makes the topic; a test may have another one than that of kafka-python.

    Attributes
    ----------
    came_later
        Whether the partitions that no position is known of were added to the topic after the very first run: they are
        read from offset 0, whatever `start` says. To be set before `open`.

    Raises
    ------
    ValueError
        For an option that is not the user's to set, for an unknown `target_type`, and for a `registry` that does not go
        with the `value_format`.

    Examples
    --------
    >>> source = KafkaSource("clicks", "broker:9092", target="bought", target_type="bool")
    >>> source.describe()
    'kafka topic clicks at broker:9092'

    """

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str | Sequence[str],
        partitions: Literal["all"] | Collection[int] = "all",
        start: Literal["earliest", "latest"] = "earliest",
        on_gap: Literal["stop", "skip"] = "stop",
        include: Collection[Include] = (),
        target: Target = None,
        target_type: str = "str",
        value_format: ValueFormat = "json",
        registry: RegistrySettings | None = None,
        options: Mapping[str, Any] | None = None,
        order_log: Path | None = None,
        checkpoints_kept: int = 3,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
        inputs: InputSettings | None = None,
        connect: ConnectTopic = KafkaTopic,
    ) -> None:
        self.topic = topic
        self.servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
        self.partitions = partitions
        self.begin_at = start
        self.skip_gaps = on_gap == "skip"
        self.order_log = order_log
        self.checkpoints_kept = checkpoints_kept
        self.came_later = False
        given = dict(options or {})
        self._group = given.pop("group_id", None)
        self._settings = client_settings(self.servers.split(","), {**_DEFAULTS, **given})
        rules = None if inputs is None else ColumnRules(inputs, max_string)
        self._schemas: RegistryLookup[int, PayloadDecoder] | None = None
        values = JsonObjects(target, target_type, max_string, rules)
        if value_format != "json":
            registry = check_format(value_format, registry)
            self._schemas = decoder_lookup(value_format, registry, self.describe())
            bears_unknown = registry.on_unknown_schema == "dead_letter"
            values = FramedObjects(target, target_type, max_string, self._schemas, bears_unknown, rules)
        self._decoder = MessageDecoder(values, max_record_bytes, include)
        self._held: PartitionBatch | None = None
        self._connect = connect
        self._reader: TopicReader | None = None
        self._committer: OffsetCommitter | None = None
        self._order: ArrivalOrder | None = None
        self._positions: Mapping[int, Position] = {}
        self._starting = StartingOffsets(partitions, start, {}, came_later=False)

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Connect, for some seconds; where no broker answers, polls continue to try. See `Source.open`.

        Raises
        ------
        SourceError
            When trying again would not help: there is no such topic or partition, the credentials or the TLS settings
            are wrong, this is not allowed, the topic is not the one of the positions, or retention has passed them.

        """
        self.close()
        self._positions = dict(positions or {})
        self._starting = StartingOffsets(self.partitions, self.begin_at, self._positions, self.came_later)
        settings = {**self._settings, "enable_auto_commit": False, "auto_offset_reset": "none"}
        self._reader = reader = TopicReader(
            self.describe(),
            lambda attempt: self._connect(self.topic, settings, attempt),
            self._starting,
            self.skip_gaps,
        )
        reader.start(OPEN_SECONDS)
        try:
            if reader.buffers is not None:
                # A failure from now on comes after what was read, which `poll` hands out first.
                self._open_order(reader)
            elif reader.failure is not None:
                raise reader.failure
        except SourceError:
            self.close()
            raise
        if self._group is not None:
            self._committer = OffsetCommitter(self.describe(), self.topic, {**settings, "group_id": self._group})

    def _open_order(self, reader: TopicReader) -> ArrivalOrder:
        """Return the order of the partitions, once they are known."""
        if self._order is None:
            self._order = ArrivalOrder()
            if self.order_log is not None:
                positions = {one: position.offset for one, position in self._positions.items()}
                log = OrderLog(self.order_log, self.checkpoints_kept)
                self._order = LoggedOrder(log, positions, reader.begins)
        return self._order

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:
        """Let each record hold these columns, and its message; see `Source.pass_through`."""
        self._decoder.passing = PassThrough(columns, message)

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Hand out records of one partition; see `Source.poll`.

        Raises
        ------
        SourceError
            As `open`, when the topic is reached only now; and when it is deleted, replaced or cut back, the right to
            read it is withdrawn, or retention passes the place (unless `on_gap` is ``"skip"``).

        """
        reader = self._reader
        if reader is None:
            raise SourceError(f"{self.describe()}: the source is not open")
        deadline = time.monotonic() + timeout
        while True:
            # What was read before the failure is handed out before it is raised.
            failure, buffers = reader.failure, reader.buffers
            if self._held is None and buffers is not None:
                self._held = self._open_order(reader).take(buffers, max_records)
            if self._held is not None:
                records = self._decode(self._held, max_records)
                if records:
                    return records
            elif failure is not None:
                raise failure
            if (remaining := deadline - time.monotonic()) <= 0:
                return []
            if self._held is not None and self._schemas is not None:
                self._schemas.wait(remaining)
            elif buffers is None or self._order is None or self._order.held:
                time.sleep(min(remaining, 0.05))
            else:
                buffers.wait(remaining, self._order.wanted)

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:
        """Return the record of the value of a message; see `Source.decode`."""
        return self._decoder.record(raw, position, following)

    def decodable(self, raw: bytes, timeout: float) -> bool:
        """Return whether the schema of a value is known; see `Source.decodable`."""
        try:
            if not self._decoder.knows(raw) and self._schemas is not None:
                self._schemas.wait(timeout)
            return self._decoder.knows(raw)
        except ConnectorError as error:
            raise SourceError(f"{self.describe()}: {error}") from None

    def _decode(self, batch: PartitionBatch, most: int) -> Sequence[Record]:
        """Return the first records of a batch that was taken, and hold the rest until its schemas are known."""
        try:
            ready, self._held = batch.cut(min(most, self._decoder.ready(batch)))
        except ConnectorError as error:
            raise SourceError(f"{self.describe()}: {error}") from None
        return [] if ready is None else self._decoder.records(self._starting.stream, ready)

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        """Where each partition begins that no position was given for; empty until the topic is reached."""
        return self._starting.chosen

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Shorten the log of the order; see `Source.saved`."""
        if self._order is not None:
            self._order.saved({one: position.offset for one, position in positions.items()})

    def commit(self, positions: Mapping[int, Position]) -> Mapping[int, int]:
        """Commit the offsets to the group, after the marks of transactions; see `Source.commit`."""
        offsets = super().commit(positions)
        if self._reader is not None and self._reader.buffers is not None:
            offsets = {one: self._reader.buffers.skip_marks(one, offset) for one, offset in offsets.items()}
        if self._committer is not None:
            self._committer.put(offsets)
        return offsets

    @property
    def lag(self) -> Mapping[tuple[str, int], int]:
        """How many records are still to come, by topic and partition: those read ahead, and those in the topic."""
        held = {} if self._held is None else {(self.topic, self._held.partition): self._held.size}
        return {place: count + held.get(place, 0) for place, count in self._counted(Buffers.lag).items()}

    @property
    def known(self) -> Mapping[tuple[str, int], int]:
        """How many records are known of: those handed out, those read ahead, and those in the topic."""
        return self._counted(Buffers.known)

    def _counted(self, count: Callable[[Buffers], Mapping[int, int]]) -> Mapping[tuple[str, int], int]:
        reader = self._reader  # it may be closed on another thread meanwhile
        buffers = None if reader is None else reader.buffers
        return {} if buffers is None else {(self.topic, one): number for one, number in count(buffers).items()}

    @property
    def health_problem(self) -> str | None:
        """Why records do not come for now: no broker or registry answers, a transaction is open; None if they may."""
        problems = [part.health_problem for part in (self._reader, self._schemas) if part is not None]
        problem = next(filter(None, problems), None)
        return None if problem is None else f"{self.describe()}: {problem}"

    @property
    def exhausted(self) -> bool:
        """False: a topic has no end."""
        return False

    @property
    def resumable(self) -> bool:
        """True: the offsets stay."""
        return True

    def columns(self, record: Record) -> Sequence[ColumnUse]:
        """Return what becomes of each column of a message; see `Source.columns`."""
        return self._decoder.columns(record)

    def describe(self) -> str:
        """Return a phrase such as ``"kafka topic clicks at broker:9092"``."""
        return f"kafka topic {self.topic} at {self.servers}"

    def close(self) -> None:
        """End the connections, in some seconds at most; closing twice does nothing."""
        if self._reader is not None:
            self._reader.stop(_CLOSE_SECONDS)
        if self._committer is not None:
            self._committer.close(_CLOSE_SECONDS)
        if self._schemas is not None:
            self._schemas.close()
        if self._order is not None:
            self._order.close()
        self._reader = self._committer = self._held = self._order = None
