"""A session of a sink with its topic: one producer's life, from its connection to the first failure."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from kafka import KafkaProducer, TopicPartition, errors
from kafka.producer.transaction_manager import ProducerIdAndEpoch

from streamkernel.connectors.kafka.base.client import NetworkClient, Unreachable
from streamkernel.connectors.kafka.writing.mark import Producer
from streamkernel.connectors.kafka.writing.provenance import Provenance
from streamkernel.connectors.kafka.writing.taken_over import TOO_LARGE, TakenOver
from streamkernel.connectors.kafka.writing.topic_scan import TopicScan
from streamkernel.connectors.kafka.writing.written_lines import WrittenLines
from streamkernel.connectors.ports import ConnectorError, Mark, Position, SinkError

__all__ = ["Broken", "ConnectSession", "Line", "ProducerSession", "Receipt", "Refused", "fenced"]

# A topic that is created again is away for a moment.
_SETTLING_SECONDS = 3.0
_CLOSE_SECONDS = 1.0
_WAIT_SECONDS = 5.0
# What is known of the topic is asked for again all the time; that it was not, so many times over, is no accident.
_ANSWERS_MISSED = 3
_FENCED = (errors.ProducerFencedError, errors.InvalidProducerEpochError)

Receipt: TypeAlias = Any
"""A `kafka.future.Future`; its ``value.offset`` is that in the partition, -1 where the broker does not say."""


class Line(NamedTuple):
    """The bytes of a line, the position of its record, and what it takes over from the message of that.

    `beside` is how many bytes it takes besides its value.
    """

    value: bytes
    position: Position
    taken: TakenOver | None = None
    beside: int = 0


class Broken(Exception):
    """A session is of no use any more, and another one may go on; the message is a phrase that says why."""


class Refused(Broken):
    """The topic refuses something that a `line` takes over; `rest` is what may still pass of it."""

    def __init__(self, reason: str, line: Line, rest: TakenOver) -> None:
        super().__init__(reason)
        self.line, self.rest = line, rest


def fenced(transactional_id: str) -> str:
    """Return the sentence that another process has the transactional id now."""
    return (
        f"another process writes with the transactional_id {transactional_id} and has fenced this one off: give "
        "each daemon its own"
    )


class ProducerSession:
    """A connected producer, and how the topic stood when it was connected; its first failure ends it.

    Left alone, kafka-python would give up the failed lines, take another producer id and go on with the lines after
    them.

    Attributes
    ----------
    stream
        The topic: ``"cluster/topic/number"``.
    writer
        What the lines are signed with.
    partitions
        How many the topic has.
    largest
        The longest batch the topic takes, in bytes; None where that is not known.
    producer
        The producer id and epoch of the broker.
    ends
        By partition, the offset after the last line that is acknowledged.
    written
        Which lines are there already.
    existing
        By partition of a source, how many lines for its records are there of runs that nothing is known of.
    unverified
        Partitions of which a line of an earlier process may still be under way: a line to one of them is to go by
        `send_verified` first.
    transactional, transaction_seconds
        Whether lines count only once they are committed, and how long that may take.

    """

    def __init__(
        self, topic: str, producer: KafkaProducer, network: NetworkClient, scan: TopicScan, writer: str
    ) -> None:
        self.stream = scan.stream
        self.writer = writer
        self.partitions = scan.partitions
        self.largest = scan.largest
        self.producer: Producer | None = None
        self.ends: dict[int, int] = {}
        self.written = WrittenLines()
        self.existing: dict[tuple[str, int], int] = {}
        self.unverified: set[int] = set()
        self._topic = topic
        self._producer = producer
        self._network = network
        self._scan = scan
        self._provenance = Provenance(writer)
        self._transactional_id = producer.config["transactional_id"]
        self.transactional = self._transactional_id is not None
        self.transaction_seconds = producer.config["transaction_timeout_ms"] / 1000
        if self.transactional:
            # Left alone, kafka-python would take the id back from whoever has shut it out, lines under way given up.
            producer._transaction_manager._supports_epoch_bump = lambda: False
        self._begun = 0.0
        self._missing_since: float | None = None

    def initialize(self) -> None:
        """Get a producer id: that of the transactional id, which fences any other holder of it, or a new one.

        Raises `Unreachable` where the broker does not answer, `ConnectorError` where it does not let the producer in.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        manager = self._producer._transaction_manager
        try:
            while not manager.has_producer_id():
                if self.transactional:
                    with contextlib.suppress(errors.KafkaTimeoutError):
                        self._producer.init_transactions()
                elif manager.last_error is not None:
                    raise manager.last_error
                else:
                    time.sleep(0.01)
                if time.monotonic() > deadline:
                    raise Unreachable(self.failure())
            self._producer.partitions_for(self._topic)
        except errors.KafkaTimeoutError:
            raise Unreachable(self.failure()) from None
        except errors.KafkaError as error:
            raise ConnectorError(self._sentence(manager.last_error or error)) from None
        identity = manager.producer_id_and_epoch
        self.producer = Producer(identity.producer_id, identity.epoch)

    def resume(self, producer: Producer, sequences: Mapping[int, int]) -> None:
        """Go on as the producer of an earlier process, with the sequence number of the next line by partition.

        A broker takes the lines of a producer in a row or not at all. Where both say that they are the same one, and
        a request of the earlier process is still under way, only one of the two can come next: the other is refused.
        """
        manager = self._producer._transaction_manager
        manager.set_producer_id_and_epoch(ProducerIdAndEpoch(producer.number, producer.epoch))
        for partition in range(self.partitions):
            manager.set_sequence_number(TopicPartition(self._topic, partition), sequences.get(partition, 0))
        self.producer = producer
        self.unverified = set(range(self.partitions))

    @property
    def sequences(self) -> dict[int, int]:
        """By partition, the sequence number of the producer's next line, once all before are acknowledged."""
        manager = self._producer._transaction_manager
        return {
            partition: manager.sequence_number(TopicPartition(self._topic, partition))
            for partition in range(self.partitions)
        }

    def send(self, line: Line) -> Receipt:
        """Give a line to the producer, which sends it when it can; raises as `explain` where it takes none."""
        value, position, taken, _ = line
        key: bytes | None = self._provenance.key(position)
        headers, timestamp = self._provenance.headers(position), None
        if taken is not None:
            key, timestamp = taken.key if taken.keyed else key, taken.timestamp
            headers = [*taken.headers, *headers]
        try:
            return self._producer.send(
                self._topic,
                value=value,
                key=key,
                headers=headers,
                partition=position.partition % self.partitions,
                timestamp_ms=timestamp,
            ).add_errback(self._failed)
        except (errors.KafkaError, ValueError) as error:
            raise self.explain(error, line) from None

    def _failed(self, error: Exception) -> None:  # noqa: ARG002 - the line has it as well
        # Called on the producer's own thread: nothing that comes after the failed lines is sent any more.
        self._producer._sender.force_close()

    def send_verified(self, line: Line) -> int:
        """Send a line and return its offset, once it was read back: no line of an earlier process came in between."""
        partition = line.position.partition % self.partitions
        try:
            offset = int(self.send(line).get().offset)
        except errors.KafkaError as error:
            raise self.explain(error, line) from None
        # Two lines with the same number are one for the broker, and it takes the second for a repetition of the first.
        try:
            found = self._scan.origin_at(partition, offset, self.writer)
        except (Unreachable, ConnectorError) as error:
            raise Broken(str(error)) from None
        if found != line.position:
            raise Broken("a line of an earlier process came in between")
        self.unverified.discard(partition)
        if not self.unverified:
            self._scan.close()
        return offset

    def follows(self, error: Exception) -> bool:
        """Return whether a line failed only because another one did."""
        # kafka-python has no class of its own for a line that was refused with another one of its batch.
        return type(error) is errors.KafkaError or isinstance(
            error, errors.IllegalStateError | errors.TransactionAbortedError
        )

    def wait(self, seconds: float) -> None:
        """Send at once what was given, and wait until it is acknowledged, but no longer than some seconds."""
        with contextlib.suppress(errors.KafkaError):
            self._producer.flush(timeout=seconds)

    def begin(self) -> None:
        """Begin a transaction."""
        self._begun = time.monotonic()
        try:
            self._producer.begin_transaction()
        except errors.KafkaError as error:
            raise self.explain(error) from None

    def commit(self) -> None:
        """Commit the transaction, however long that takes; raises `SinkError` or `Broken`, as `explain`."""
        try:
            self._producer.commit_transaction()
        except errors.KafkaError as error:
            raise self.explain(error) from None

    def explain(self, error: Exception, line: Line | None = None) -> Exception:
        """Return what the failure of a line, or of a transaction, means: a `SinkError` or `Broken`."""
        if line is not None and line.taken is not None and (rest := line.taken.without_refused(error)) is not None:
            return Refused(_phrase(error), line, rest)
        if isinstance(error, TOO_LARGE) and line is not None:
            return SinkError(self._too_large(line))
        manager = self._producer._transaction_manager
        cause = manager.last_error if self.transactional and manager.last_error is not None else error
        if cause.args and isinstance(cause.args[0], errors.KafkaError):
            cause = cause.args[0]
        if isinstance(cause, errors.AuthorizationError) or (self.transactional and isinstance(cause, _FENCED)):
            return SinkError(self._sentence(cause))
        return Broken(_phrase(cause))

    def _sentence(self, error: Exception) -> str:
        name = self._transactional_id
        if isinstance(error, errors.TransactionalIdAuthorizationFailedError):
            return f"not authorized to use the transactional_id {name}: grant Write and Describe on it"
        if isinstance(error, errors.AuthorizationError):
            return "not authorized to write to the topic: grant Write on it"
        if isinstance(error, _FENCED):
            if time.monotonic() - self._begun > self.transaction_seconds:
                return (
                    f"the broker ended a transaction that was open for more than {self.transaction_seconds:.0f} s "
                    "(transaction_timeout_ms under options); start again, nothing is lost"
                )
            return fenced(str(name))
        if isinstance(error, errors.InvalidTransactionTimeoutError) or "InvalidTransactionTimeout" in str(error):
            return (
                f"the broker allows no transactions of {self.transaction_seconds:.0f} s: set transaction_timeout_ms "
                "under options to at most its transaction.max.timeout.ms"
            )
        return f"the broker refuses the lines ({error}); start again, nothing is lost"

    def _too_large(self, line: Line) -> str:
        limit = self.largest
        at_most = "more than" if limit is None else f"more than the {limit:,} of"
        partition, offset = line.position[1:]
        return (
            f"the line of the record at partition {partition}, offset {offset:,} takes "
            f"{len(line.value):,} bytes, {at_most} its max.message.bytes (or max_request_size under "
            "options): raise that, or lower limits.max_record_bytes"
        )

    def verify(self) -> bool:
        """Return whether lines can be sent, by what is known of the topic; raises where it is gone or another one."""
        cluster = self._network.cluster
        for node in cluster.brokers():
            # It is not tried again, and whoever waits for this broker waits for ever.
            if self._network.connections.auth_failure(node.node_id) is not None:
                raise self._ended(
                    "the broker refuses credentials that it accepted before", "; start again, nothing is lost"
                )
        if cluster.partitions_for_topic(self._topic):
            self._missing_since = None
            number = cluster.topic_id(self._topic)
            if number is not None and str(number) != self.stream.rpartition("/")[2]:
                raise self._ended(
                    "the topic was deleted and created again", " while it was written; start again to write to it"
                )
            return True
        if self._topic in cluster.unauthorized_topics:
            raise SinkError("not authorized to write to the topic any more: grant Write on it")
        if self._missing_since is None:
            self._missing_since = time.monotonic()
            cluster.request_update()
        elif time.monotonic() - self._missing_since > _SETTLING_SECONDS:
            raise SinkError("the topic was deleted while it was written")
        return False

    def _ended(self, reason: str, sentence: str) -> Exception:
        """Return the end of the session, or of the sink where its transaction ends with it."""
        return SinkError(f"{reason}{sentence}") if self.transactional else Broken(reason)

    def answered(self) -> bool:
        """Return whether a broker has answered anything of late."""
        connections = self._network.connections
        seconds = _ANSWERS_MISSED * connections.config["metadata_max_age_ms"] / 1000
        return bool(time.monotonic() - connections.heard < max(seconds, _WAIT_SECONDS))

    def failure(self) -> str:
        """Return why no broker answers, as a phrase."""
        return self._network.connections.failure or "no answer"

    def abandon(self) -> None:
        """End the connection, within seconds; what was not acknowledged may be in the topic or not."""
        self._scan.close()
        # By itself the producer would wait for what it cannot send, and once more at the end of the process.
        self._producer._sender.force_close()
        with contextlib.suppress(errors.KafkaError):
            self._producer.close(timeout=_CLOSE_SECONDS)
        self._producer._closed = True


def _phrase(error: Exception) -> str:
    reason = error.args[0] if error.args and error.args[0] else getattr(error, "description", "") or "no reason given"
    return f"{type(error).__name__}: {reason}"


ConnectSession: TypeAlias = Callable[[Mark | None, int, Callable[[], bool], Producer | None], ProducerSession]
"""Makes a session that goes on from a mark, given how many attempts failed before, and asks whether to give up.

The producer is that of the session before in this process, if there was one: where another process has taken its
transactional id since, it is not taken back.

It raises `Unreachable` where trying again may help, and a `ConnectorError` where it would
not.
"""
