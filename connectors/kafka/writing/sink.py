"""Lines to a topic of Kafka, each exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.writing.delivery import Delivery
from streamkernel.connectors.kafka.writing.existing_lines import Existing, ExistingLines
from streamkernel.connectors.kafka.writing.refusals import Refusals, room
from streamkernel.connectors.kafka.writing.session import ConnectSession
from streamkernel.connectors.kafka.writing.session_factory import SessionFactory
from streamkernel.connectors.kafka.writing.taken_over import KeyOf, Passing, TakeOver
from streamkernel.connectors.kafka.writing.unencoded import EncodingQueue, Shorten
from streamkernel.connectors.ports import ConnectorError, Mark, OutageError, Position, Sink, SinkError
from streamkernel.connectors.registry.client import RegistryOutage, UnknownSchemaError
from streamkernel.connectors.registry.line_schema import LineSchema
from streamkernel.connectors.registry.reading import check_format
from streamkernel.connectors.registry.settings import RegistrySettings, ValueFormat
from streamkernel.connectors.registry.writing import LineEncoder

__all__ = ["KafkaSink", "Shorten"]

OPEN_SECONDS = 5.0
# How long a checkpoint waits for a broker that says nothing. A stop, with what it tries, must be over in ten seconds.
PATIENCE_SECONDS = 3.0
_CLOSE_SECONDS = 2.0


class KafkaSink(Sink):
    """Write lines to a topic, as JSON or by a schema of a registry.

    The value of a message is the line; `Provenance` makes its key and its headers.
    The lines of a partition of the source go to one partition of the topic (its number modulo theirs), in order.

    After a restart, what stands in the topic after the mark is read, and a line that is there is not written again.
    With a `transactional_id` lines count for consumers (that read what is committed) soon after `publish`, at the
    latest when `flush` returns, and a second sink with that id shuts the first one out. Without one they count at once.
    A process that was killed may still have a request under way then; its successor goes on under the same name and
    number, so that the broker takes the one or the other, and reads again what it missed.

    While no broker acknowledges anything, or no registry answers, lines wait in memory; whoever writes them looks at
    `waiting`.

    Parameters
    ----------
    topic
        Its name; a topic that is not there is never made.
    bootstrap_servers
        ``"host:port"``, several of them with commas between, or a list.
    transactional_id
        What the broker knows the writer by, of one sink alone; None: no transactions.
    compression
        ``"gzip"``, ``"snappy"``, ``"lz4"``, ``"zstd"`` or None.
    options
        Settings of kafka-python by its own names, such as ``security_protocol``.
    shorten
        What to do with a line the topic would refuse as too large; None: it ends the sink.
    existing
        What to do without a mark where the topic holds lines for records of the same partition of the source:
        ``"refuse"`` the first line for one of them, or ``"append"`` it. The last 10,000 offsets are looked at.
    key
        The key of a message: ``"position"``, which no two lines share, or ``"source"``, that of the message its record
        came in. Lines are known again by their headers, not by their key; where a compacted topic drops those of a key
        but the last, they are not written again.
    pass_through
        What else a message takes over from that one: ``"headers"`` and ``"timestamp"``. Where the topic refuses a key,
        headers or a timestamp of the source, the line goes out without it; see
        `streamkernel.connectors.kafka.writing.refusals.Refusals`.
    value_format
        ``"json"``, or with a registry ``"avro"``, ``"json_schema"`` or ``"protobuf"``.
    registry
        The schema registry of the lines.
    schema
        What a line holds, as it is registered; needed with a registry.
    in_order
        Whether lines come in the order of their records. If not, a later line in the topic does not show that an
        earlier one was written.
    connect
        Makes the sessions; a test may have other ones than those of kafka-python.
    clock
        Gives seconds, and never goes back.

    Raises
    ------
    ValueError
        For an option that is not the user's to set, for a compression that is not installed, and for a `registry` that
        does not go with the `value_format`.

    """

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str | Sequence[str],
        transactional_id: str | None = None,
        compression: str | None = None,
        options: Mapping[str, Any] | None = None,
        shorten: Shorten | None = None,
        existing: Existing = "refuse",
        key: KeyOf = "position",
        pass_through: Collection[Passing] = (),
        value_format: ValueFormat = "json",
        registry: RegistrySettings | None = None,
        schema: LineSchema | None = None,
        in_order: bool = True,
        connect: ConnectSession | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.topic = topic
        self.servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
        self.transactional_id = transactional_id
        self._sessions = SessionFactory(
            topic,
            self.servers.split(","),
            transactional_id,
            compression,
            options or {},
            keys_repeat=key == "source",
            in_order=in_order,
        )
        self._connect = connect or self._sessions.connect
        self._encoder: LineEncoder | None = None
        if value_format != "json":
            if schema is None:
                raise ValueError(f"schema: required with value_format {value_format}")
            settings = check_format(value_format, registry)
            self._encoder = LineEncoder(value_format, settings, topic, schema, self.describe())
        self._shorten = shorten
        self._take_over = TakeOver(key, pass_through)
        self._queue = EncodingQueue(self._encoder, shorten, self._take_over)
        self._existing = existing
        self._clock = clock
        self._is_open = False
        self._delivery = self._begin(None)

    def _begin(self, mark: Mark | None) -> Delivery:
        place, name = self.describe(), f"kafka-{self.topic}"
        existing = ExistingLines(self._existing, place, self._clock)
        refusals = Refusals(place)
        return Delivery(place, name, self._connect, self.transactional_id, existing, refusals, self._clock, mark)

    def open(self, mark: Mark | None = None) -> None:
        """Connect, for some seconds; where no broker answers, it goes on while lines wait. See `Sink.open`.

        What a topic holds already cannot be cut off: without a mark, lines are appended to it, but for those of records
        that have one there (see `existing`).

        Raises
        ------
        SinkError
            When trying again would not help: there is no such topic, the credentials or the TLS settings are wrong,
            this is not allowed, the registry refuses the schema, or the topic ends before the mark.

        """
        self.close()
        self._delivery = self._begin(mark)
        self._queue = EncodingQueue(self._encoder, self._shorten, self._take_over)
        self._is_open = True
        deadline = self._clock() + OPEN_SECONDS
        if self._encoder is not None:
            self._is_ready(self._encoder)
        self._delivery.reach(OPEN_SECONDS)
        if self._encoder is not None:
            self._ask_registry(self._encoder, max(0.0, deadline - self._clock()))

    def _ask_registry(self, encoder: LineEncoder, seconds: float) -> bool:
        """Wait until lines can be encoded, and return whether they can."""
        if not self._is_ready(encoder):
            encoder.wait(seconds)
        return self._is_ready(encoder)

    def _is_ready(self, encoder: LineEncoder) -> bool:
        try:
            return encoder.ready
        except SinkError as error:
            raise SinkError(f"{self.describe()}: {error}") from None

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position]) -> None:
        """Take lines, each with the position of its record; see `Sink.write`.

        Raises
        ------
        SinkError
            Also for lines before these: when one is too large for the topic by itself, writing is not allowed (any
            more), another sink has the same transactional id, or the topic is deleted.

        """
        self._check_open()
        try:
            taken = self._queue.encoded(lines, positions, room(self._delivery.largest))
        except SinkError as error:
            raise SinkError(f"{self.describe()}: {error}") from None
        self._delivery.put(taken)

    def publish(self) -> None:
        """Begin to commit the lines where there are transactions; see `Sink.publish`.

        Raises
        ------
        SinkError
            As `write`.

        """
        self._check_open()
        self._delivery.publish()

    @property
    def unpublished(self) -> int:
        """How many lines are not acknowledged or, where there are transactions, not committed."""
        return self._delivery.unpublished + len(self._queue)

    def flush(self) -> Mark:
        """Wait until every line is acknowledged, and commit them where there are transactions; see `Sink.flush`.

        Raises
        ------
        OutageError
            When no broker acknowledged anything, or no registry answered, for some seconds.
        SinkError
            As `write`.

        """
        self._check_open()
        self._complete(PATIENCE_SECONDS)
        return self._delivery.mark()

    def _complete(self, patience: float) -> None:
        encoder = self._encoder
        if encoder is not None and len(self._queue):
            if not self._ask_registry(encoder, patience):
                problem = encoder.health_problem or "the schema registry has not answered yet"
                raise OutageError(f"{self.describe()}: {problem}, {len(self._queue):,} lines wait")
            self.write((), ())
        self._delivery.complete(patience)

    @property
    def waiting(self) -> int:
        """How many lines are not acknowledged."""
        return len(self._delivery.backlog) + len(self._queue)

    @property
    def waiting_bytes(self) -> int:
        """How much memory the lines take that are not acknowledged, about."""
        return self._delivery.backlog.bytes + self._queue.bytes

    @property
    def exactly_once(self) -> bool:
        """True: a line that stands in the topic is not written again."""
        return True

    def describe(self) -> str:
        """Return a phrase such as ``"kafka topic predictions at broker:9092"``."""
        return f"kafka topic {self.topic} at {self.servers}"

    def probe(self) -> str:
        """Try to reach the topic, without writing to it or shutting out who does, and describe it.

        Raises
        ------
        SinkError
            When it cannot be reached, or writing to it is not allowed.

        """
        try:
            self._sessions.scan().close()
            by = "" if self._encoder is None else f", {self._encoder.probe()}"
        except (Unreachable, RegistryOutage, UnknownSchemaError, ConnectorError) as error:
            raise SinkError(f"{self.describe()}: {error}") from None
        return f"{self.describe()}{by}"

    def find_problem(self, mark: Mark | None = None) -> None:  # noqa: ARG002 - what it says needs the topic read
        """Raise what a topic refuses without being written to; a broker that is not there is no problem. See `Sink`."""
        try:
            self._sessions.scan().close()
        except Unreachable:
            return
        except ConnectorError as error:
            raise SinkError(f"{self.describe()}: {error}") from None

    def close(self) -> None:
        """Flush, for some seconds, and end the connections; closing twice does nothing."""
        if not self._is_open:
            return
        try:
            # What failed was reported, and a restart writes it again.
            if self._delivery.unfinished or (self._queue.unfinished and not self._delivery.failed):
                self._complete(_CLOSE_SECONDS)
        finally:
            self._is_open = False
            self._delivery.close()
            if self._encoder is not None:
                self._encoder.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise SinkError(f"{self.describe()}: the sink is not open")
