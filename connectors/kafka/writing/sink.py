"""Lines to a topic of Kafka, each exactly once by transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat, starmap
from typing import Any, TypeAlias

from streamkernel.connectors.encode import ColumnLines, to_json, to_json_lines
from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.writing.copying import CopyLimits, KeyOf, Passing, copied, room
from streamkernel.connectors.kafka.writing.delivery import Connect, Delivery, Existing
from streamkernel.connectors.kafka.writing.line import Copied, Line, size_of
from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.kafka.writing.producer import connect_producer, producer_settings
from streamkernel.connectors.kafka.writing.topic import find_topic
from streamkernel.connectors.pass_through import SourceMessage
from streamkernel.connectors.ports import ConnectorError, Mark, OutageError, Position, Sink, SinkError
from streamkernel.connectors.registry.client import RegistryOutage, UnknownSchemaError
from streamkernel.connectors.registry.line_schema import LineSchema
from streamkernel.connectors.registry.objects import check_format
from streamkernel.connectors.registry.settings import RegistrySettings, ValueFormat
from streamkernel.connectors.registry.writing import LineEncoder

__all__ = ["KafkaSink", "Shorten"]

Shorten: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, Any]]
"""Makes a line that takes at most a given number of bytes as JSON."""

OPEN_SECONDS = 5.0
# How long a checkpoint waits for a broker that says nothing. A stop, with what it tries, must be over in ten seconds.
PATIENCE_SECONDS = 3.0
_CLOSE_SECONDS = 2.0


class KafkaSink(Sink):
    """Write lines to a topic, as JSON or by a schema of a registry.

    The value of a message is the line; `Provenance` makes its key and its headers.
    The lines of a partition of the source go to one partition of the topic (its number modulo theirs), in order.

    With a `transactional_id` consumers with ``isolation.level=read_committed`` read each line once, soon after the
    `commit` of its checkpoint. `streamkernel.connectors.kafka.writing` explains how. A second sink with that id fences
    the first one. Without an id, consumers read a line as soon as the broker has it, and some lines may come twice
    after a restart.

    While no broker acknowledges anything, or no registry answers, lines wait in memory: see `waiting`.

    Parameters
    ----------
    topic
        Its name; a missing topic is never made.
    bootstrap_servers
        ``"host:port"``, several of them with commas between, or a list.
    transactional_id
        The name by which the broker knows the writer, and the group of its markers; None: no transactions.
    compression
        ``"gzip"``, ``"snappy"``, ``"lz4"``, ``"zstd"`` or None.
    options
        Settings of kafka-python by its own names, such as ``security_protocol``.
    shorten
        What to do with a line the topic would refuse as too large; None: it ends the sink.
    existing
        What to do where the topic has lines of the transactional id that the mark does not know: ``"refuse"``, or
        ``"append"`` to them.
    key
        The key of a message: ``"position"``, which no two lines share, or ``"source"``, the key of its source message.
    pass_through
        What else a message copies from its source message: ``"headers"`` and ``"timestamp"``. `CopyLimits` leaves out
        what the topic refuses.
    value_format
        ``"json"``, or with a registry ``"avro"``, ``"json_schema"`` or ``"protobuf"``.
    registry
        The schema registry of the lines.
    schema
        What a line holds, as it is registered; needed with a registry.
    connect
        Makes the producers; a test may have other ones than those of kafka-python.

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
        connect: Connect | None = None,
    ) -> None:
        self.topic = topic
        self.servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
        self.transactional_id = transactional_id
        self._settings = producer_settings(self.servers.split(","), compression, options or {})
        self._connect = connect or partial(connect_producer, topic, self._settings)
        self._encoder: LineEncoder | None = None
        if value_format != "json":
            if schema is None:
                raise ValueError(f"schema: required with value_format {value_format}")
            settings = check_format(value_format, registry)
            self._encoder = LineEncoder(value_format, settings, topic, schema, self.describe())
        encode = None if self._encoder is None else self._encoder.encode
        self._encode = _json if encode is None else lambda lines: list(map(encode, lines))
        self._shorten = shorten
        self._keyed, self._passing = key == "source", frozenset(pass_through)
        self._existing: Existing = existing
        self._limits = CopyLimits(self.describe())
        # The lines that wait for the registry's answer, and whether it can never be of use to them.
        self._queue: list[tuple[Sequence[Mapping[str, Any]], Sequence[Position]]] = []
        self._queue_bytes, self._failed = 0, False
        self._delivery: Delivery | None = None

    def open(self, mark: Mark | None = None) -> None:
        """Connect, for some seconds; a thread continues where no broker answers. See `Sink.open`.

        Raises
        ------
        SinkError
            When trying again would not help: there is no such topic, the credentials or the TLS settings are wrong,
            this is not allowed, the registry refuses the schema, or the topic does not fit the mark.

        """
        self.close()
        known = None if mark is None else OutputMark.from_json(mark)
        self._queue, self._queue_bytes, self._failed = [], 0, False
        place, name = self.describe(), f"kafka-{self.topic}"
        self._delivery = Delivery(
            place, name, self._connect, self.transactional_id, self._existing, self._limits, known
        )
        deadline = time.monotonic() + OPEN_SECONDS
        self._can_encode(0.0)  # the registry is asked meanwhile
        self._delivery.start(OPEN_SECONDS)
        self._can_encode(max(0.0, deadline - time.monotonic()))

    def _can_encode(self, seconds: float) -> bool:
        """Wait some seconds for the registry, and return whether lines can be encoded."""
        try:
            if self._encoder is not None and seconds and not self._encoder.ready:
                self._encoder.wait(seconds)
            return self._encoder is None or self._encoder.ready
        except SinkError as error:
            self._failed = True
            raise SinkError(f"{self.describe()}: {error}") from None

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position]) -> None:
        """Take lines, each with the position of its record; see `Sink.write`.

        Raises
        ------
        SinkError
            Also for lines before these: when one is too large for the topic, writing is not allowed (any more),
            another sink has the same transactional id, or the topic is deleted.

        """
        delivery = self._opened()
        if lines:
            self._queue.append((lines, positions))
        ready = self._can_encode(0.0)
        encoded = self._encoded() if ready else []
        if ready:
            self._queue, self._queue_bytes = [], 0
        else:
            taken = zip(map(to_json, lines), positions, self._copied(lines), strict=True)
            self._queue_bytes += size_of([Line(*parts) for parts in taken])
        delivery.put(encoded)

    def _encoded(self) -> list[Line]:
        try:
            return [line for some in self._queue for line in self._lines(*some, room(self._limits.topic.largest))]
        except SinkError as error:
            self._failed = True
            raise SinkError(f"{self.describe()}: {error}") from None

    def _lines(self, lines: Sequence[Mapping[str, Any]], places: Sequence[Position], most: int) -> Iterator[Line]:
        values = self._encode(lines)
        if self._shorten is not None and max(map(len, values)) > most:
            for n, value in enumerate(values):
                if len(value) > most:
                    [values[n]] = self._encode([self._shorten(lines[n], most)])
        return starmap(Line, zip(values, places, self._copied(lines), strict=True))

    def _copied(self, lines: Sequence[Mapping[str, Any]]) -> Iterable[Copied | None]:
        """Return what lines copy from the messages of their records."""
        if not isinstance(lines, ColumnLines):
            given: Iterable[SourceMessage | None] = (getattr(line, "message", None) for line in lines)
        elif lines.messages is None:
            return repeat(None, len(lines))
        else:
            given = lines.messages
        return (copied(one, self._keyed, self._passing) for one in given)

    def flush(self) -> Mark:
        """Wait until the broker has every line, and return them in a mark; see `Sink.flush`.

        Raises
        ------
        OutageError
            When no broker acknowledged anything, or no registry answered, for some seconds.
        SinkError
            As `write`.

        """
        delivery = self._opened()
        self._complete(delivery, PATIENCE_SECONDS)
        return delivery.seal().to_json()

    def _complete(self, delivery: Delivery, patience: float) -> None:
        if self._queue and self._encoder is not None:
            if not self._can_encode(patience):
                problem = self._encoder.health_problem or "the schema registry has not answered yet"
                raise OutageError(f"{self.describe()}: {problem}, {self._n_queued:,} lines wait")
            self.write((), ())
        delivery.complete(patience)

    def commit(self) -> None:
        """Commit the lines of the last `flush`; see `Sink.commit`."""
        self._opened().commit()

    def publish(self) -> None:
        """Send the lines without waiting for more of them; see `Sink.publish`."""
        self._opened().hurry()

    @property
    def commit_bytes(self) -> int | None:
        """How much memory the lines take that wait for `commit`; None without transactions."""
        return None if self.transactional_id is None or self._delivery is None else self._delivery.commit_bytes

    @property
    def _n_queued(self) -> int:
        return sum(len(lines) for lines, _ in self._queue)

    @property
    def unpublished(self) -> int:
        """How many lines are not acknowledged or, where there are transactions, not committed."""
        return (0 if self._delivery is None else self._delivery.uncommitted) + self._n_queued

    @property
    def waiting(self) -> int:
        """How many lines are not acknowledged."""
        return (0 if self._delivery is None else self._delivery.unacked[0]) + self._n_queued

    @property
    def waiting_bytes(self) -> int:
        """How much memory the lines take that are not acknowledged, about."""
        return (0 if self._delivery is None else self._delivery.unacked[1]) + self._queue_bytes

    @property
    def exactly_once(self) -> bool:
        """Whether there are transactions."""
        return self.transactional_id is not None

    def describe(self) -> str:
        """Return a phrase such as ``"kafka topic predictions at broker:9092"``."""
        return f"kafka topic {self.topic} at {self.servers}"

    def probe(self) -> str:
        """Try to reach the topic, without writing to it or fencing its writer, and describe it.

        Raises
        ------
        SinkError
            When it cannot be reached, or writing to it is not allowed.

        """
        try:
            find_topic(self.topic, self._settings)
            by = "" if self._encoder is None else f", {self._encoder.probe()}"
        except (Unreachable, RegistryOutage, UnknownSchemaError, ConnectorError) as error:
            raise SinkError(f"{self.describe()}: {error}") from None
        return f"{self.describe()}{by}"

    def find_problem(self, mark: Mark | None = None) -> None:  # noqa: ARG002 - `open` alone may ask for the marker
        """Raise what a topic refuses without being written to; a broker that is away is no problem. See `Sink`."""
        try:
            find_topic(self.topic, self._settings)
        except Unreachable:
            return
        except ConnectorError as error:
            raise SinkError(f"{self.describe()}: {error}") from None

    def close(self) -> None:
        """Send what can be sent within some seconds, and end the connections; closing twice does nothing."""
        delivery, self._delivery = self._delivery, None
        if delivery is None:
            return
        try:
            # A restart writes again what a transaction does not hold.
            waits = delivery.unacked[0] or self._n_queued
            if waits and not self.exactly_once and delivery.error is None and not self._failed:
                self._delivery = delivery
                self._complete(delivery, _CLOSE_SECONDS)
        finally:
            self._delivery = None
            delivery.close(_CLOSE_SECONDS)
            if self._encoder is not None:
                self._encoder.close()

    def _opened(self) -> Delivery:
        if self._delivery is None:
            raise SinkError(f"{self.describe()}: the sink is not open")
        return self._delivery


def _json(lines: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Encode lines as `to_json` does each."""
    return bytes(to_json_lines(lines)).split(b"\n")[:-1]
