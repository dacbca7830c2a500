"""One producer of an output topic, from its connection to its first failure."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition, codec, errors
from kafka.record.default_records import DefaultRecordBatchBuilder

from streamkernel.connectors.kafka.base.client import Unreachable, connect
from streamkernel.connectors.kafka.base.options import OUTPUT_RESERVED, client_settings
from streamkernel.connectors.kafka.writing.batches import LineBatch, batched
from streamkernel.connectors.kafka.writing.line import Line, LineParts, Provenance
from streamkernel.connectors.kafka.writing.mark import Marker
from streamkernel.connectors.kafka.writing.producer_client import ProducerClient
from streamkernel.connectors.kafka.writing.topic import OutputTopic, find_topic, fitting
from streamkernel.connectors.ports import ConnectorError, SinkError

__all__ = ["Broken", "TopicProducer", "connect_producer", "producer_settings"]

_DEFAULTS: Mapping[str, Any] = {
    # Large batches cost half as much a line as small ones.
    "batch_size": 2**19,
    "linger_ms": 50,
    # The broker has the last word on how long a line may be.
    "max_request_size": 2**24,
    # As long as brokers allow: one that is away must not end a transaction.
    "transaction_timeout_ms": 900_000,
    # kafka-python also waits this long between the steps of a transaction.
    "retry_backoff_ms": 50,
}
_ALWAYS: Mapping[str, Any] = {
    "acks": "all",
    "enable_idempotence": True,
    "delivery_timeout_ms": math.inf,
    "max_block_ms": 1000,
}
_WAIT_SECONDS = 5.0
_CLOSE_SECONDS = 1.0
_LOOK_SECONDS, _NAP_SECONDS = 0.1, 0.002
# What a batch takes in addition to key, value and headers of its only line, whose lengths take five bytes each.
_MOST_BESIDE = DefaultRecordBatchBuilder.HEADER_STRUCT.size + DefaultRecordBatchBuilder.MAX_RECORD_OVERHEAD + 3 * 5
# A topic that is created again is away for a moment.
_SETTLING_SECONDS = 3.0
_TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
_NOT_READABLE = "TxnOffsetCommitResponse: [Error 29]"
_FENCED = (errors.ProducerFencedError, errors.InvalidProducerEpochError)

Patient: TypeAlias = Callable[[int], bool]
"""Hears how many more lines are acknowledged, and returns whether to wait on."""


class Broken(Exception):
    """A producer cannot be used any more, and another one may do better; the message is a phrase that says why."""

    passes = False
    """Whether the reason passes, however often it occurs."""


class TopicProducer:
    """A connected producer, and what the cluster said about its topic; its first failure ends it.

    Left alone, kafka-python would give up the failed lines, take another producer id and send the lines after them.

    Attributes
    ----------
    found
        The topic.
    transactional_id
        The name by which the broker knows the writer; None: no transactions.
    linger
        How many seconds a line waits for others, to be sent with them.

    """

    def __init__(self, topic: str, settings: Mapping[str, Any], found: OutputTopic, attempt: int) -> None:
        self.found = found
        self.transactional_id: str | None = settings.get("transactional_id")
        self.linger: float = settings["linger_ms"] / 1000
        self._topic = topic
        self._attempt = attempt
        self._settings = settings
        if found.largest is not None:
            # The broker would refuse a larger batch, and the client would send it again in halves.
            settings = {**settings, "batch_size": min(settings["batch_size"], found.largest)}
        known = fitting(KafkaProducer, settings)
        self._producer, self._network = connect(KafkaProducer, known, attempt, ProducerClient)
        self._accumulator = self._producer._accumulator
        self._manager = self._accumulator.config["transaction_manager"]
        self._batch_size: int = settings["batch_size"]
        self._longest: int = settings["max_request_size"] - _MOST_BESIDE
        self._compression: str | None = settings["compression_type"]
        self._timeout = self._producer.config["transaction_timeout_ms"] / 1000
        # By itself, kafka-python would take the id back from the process that fenced this one.
        self._renewing = False
        if self.transactional_id is not None:
            self._manager._supports_epoch_bump = lambda: self._renewing
        # When the last transaction began, and whether it is still open.
        self._begun, self._open = 0.0, False
        # A request of an earlier connection, held up by the broker, may come late and fence this one.
        self._follows_a_lost_one = attempt > 0
        self._missing_since: float | None = None

    def initialize(self) -> None:
        """Fence other holders of the transactional id, and end their transaction.

        Raises `Unreachable` where the broker does not answer, `ConnectorError` where it does not let the producer in.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        try:
            while self.transactional_id is not None:
                with contextlib.suppress(errors.KafkaTimeoutError):
                    self._producer.init_transactions()
                    break
                if time.monotonic() > deadline:
                    raise Unreachable(self.failure())
            self._producer.partitions_for(self._topic)
        except errors.KafkaTimeoutError:
            raise Unreachable(self.failure()) from None
        except errors.KafkaError as error:
            cause = self._manager.last_error or error
            if isinstance(cause, _FENCED):
                raise self.explain(cause) from None
            raise ConnectorError(self._sentence(cause)) from None

    def marker(self) -> Marker | None:
        """Return the marker that the last committed transaction left; None where the broker has none."""
        settings = {
            **fitting(KafkaConsumer, self._settings),
            "group_id": self.transactional_id,
            # An offset of a transaction that is still being committed is waited for.
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
        }
        consumer, network = connect(KafkaConsumer, settings, self._attempt)
        try:
            place = TopicPartition(self._topic, 0)
            found = consumer.committed(place, metadata=True, timeout_ms=1000 * _WAIT_SECONDS)
        except errors.AuthorizationError as error:
            raise ConnectorError(self._sentence(error)) from None
        except (errors.KafkaError, RuntimeError):
            raise Unreachable(network.connections.failure or "no answer") from None
        finally:
            consumer.close(autocommit=False, timeout_ms=1000 * _CLOSE_SECONDS)
        if found is None:
            return None
        writer, _, last = found.metadata.partition(" ")
        return Marker(found.offset, writer, last)

    def send(self, lines: Sequence[Line], provenance: Provenance, patient: Patient) -> None:
        """Send lines, in a transaction where there is an id, and wait until all are acknowledged.

        Raises `SinkError` or `Broken`, and `Unreachable` where the patience is over.
        """
        self._begin(patient)
        records = list(provenance.parts(lines))
        sizes = (len(key or b"") + len(value) + len(headers) for key, value, headers, _ in records)
        n_fit = next((n for n, size in enumerate(sizes) if size > self._longest), len(lines))
        try:
            batches = self._put(lines[:n_fit], records)
        except errors.KafkaError as error:
            raise self.explain(error) from None
        n_acked, failing = 0, False
        left: Sequence[LineBatch] = batches
        while left:
            left[0].wait(_LOOK_SECONDS)
            left = [batch for batch in left if not batch.acked]
            before, n_acked = n_acked, min((batch.lines[0] for batch in left), default=n_fit)
            waits = patient(n_acked - before)
            if failures := sorted(failure for batch in left for failure in batch.failures):
                raise self._cause([(error, lines[n]) for n, error in failures])
            if failing:  # and no line says why
                raise self.explain(self._manager.last_error)
            if not waits and left:
                raise Unreachable(self.failure())
            failing = self._manager.has_error()
            self.verify()
        if n_fit < len(lines):
            raise self.explain(errors.MessageSizeTooLargeError(), lines[n_fit])

    def _put(self, lines: Sequence[Line], records: Sequence[LineParts]) -> list[LineBatch]:
        """Hand lines to the thread that sends, in batches by partition."""
        now = int(1000 * time.time())
        times = [now if copied is None or copied.timestamp is None else copied.timestamp for _, _, copied in lines]
        numbers: dict[int, list[int]] = {}
        for n, line in enumerate(lines):
            numbers.setdefault(line.position.partition % self.found.partitions, []).append(n)
        batches: list[LineBatch] = []
        for partition, some in numbers.items():
            place = TopicPartition(self._topic, partition)
            if self.transactional_id is not None:
                self._manager.maybe_add_partition_to_transaction(place)
            parts, at = [records[n] for n in some], [times[n] for n in some]
            for made in batched(parts, at, self._batch_size, self._compression):
                these, some = some[: made.next_offset()], some[made.next_offset() :]
                batches.append(LineBatch(place, made, these, self._stop))
        for batch in batches:
            self._accumulator._batches[batch.topic_partition].append(batch)
        self._producer._sender.wakeup()
        return batches

    def _stop(self, error: Exception) -> None:  # noqa: ARG002 - the receipt has it as well
        # Called on the producer's own thread: nothing after the failed lines is sent any more.
        self._producer._sender.force_close()

    def _cause(self, failed: Sequence[tuple[Exception, Line]]) -> Exception:
        """Return what the failure of lines means: most fail only because another one did."""
        return self.explain(*next((one for one in failed if not _follows(one[0])), failed[0]))

    def commit(self, marker: Marker, patient: Patient) -> None:
        """Commit the lines of the transaction with a marker; raises as `send`."""
        self._begin(patient)
        place = {
            TopicPartition(self._topic, 0): OffsetAndMetadata(
                marker.number, f"{marker.writer} {marker.last}".rstrip(), -1
            )
        }
        try:
            # The public methods wait forever for an answer.
            for step in (
                partial(self._manager.send_offsets_to_transaction, place, self.transactional_id),
                self._manager.begin_commit,
            ):
                result = step()
                self._producer._sender.wakeup()
                self._wait_for(partial(result.wait, timeout_ms=1000 * _LOOK_SECONDS), patient)
        except errors.KafkaError as error:
            raise self.explain(error) from None
        self._open = self._follows_a_lost_one = False

    def _begin(self, patient: Patient) -> None:
        """Wait until the topic is there, and begin a transaction, unless one is open."""
        self._wait_for(self.verify, patient)
        if self.transactional_id is None or self._open:
            return
        try:
            if self._begun:
                self._renew(patient)
            self._begun, self._open = time.monotonic(), True
            self._producer.begin_transaction()
        except errors.KafkaError as error:
            raise self.explain(error) from None

    def _renew(self, patient: Patient) -> None:
        """Get another epoch: a request of the last transaction that was held up cannot end the next one."""
        manager = self._manager
        self._renewing = True
        try:
            manager.bump_producer_id_and_epoch()
            self._producer._sender.wakeup()
            self._wait_for(lambda: not manager.is_bumping_epoch(), patient)
        finally:
            self._renewing = False
        if manager.has_error():
            raise manager.last_error

    def _wait_for(self, done: Callable[[], bool], patient: Patient) -> None:
        while not done():
            if not patient(0):
                raise Unreachable(self.failure())
            time.sleep(_NAP_SECONDS)

    def explain(self, error: Exception, line: Line | None = None) -> Exception:
        """Return what the failure of a line, or of a transaction, means: a `SinkError` or `Broken`."""
        if isinstance(error, _TOO_LARGE) and line is not None:
            return SinkError(self._too_large(line))
        transactional = self.transactional_id is not None
        cause = self._manager.last_error if transactional and self._manager.last_error is not None else error
        if cause.args and isinstance(cause.args[0], errors.KafkaError):
            cause = cause.args[0]
        timed_out = self._begun > 0 and time.monotonic() - self._begun > self._timeout
        # kafka-python has no error of its own for an offset that may not be committed.
        denied = isinstance(cause, errors.AuthorizationError) or _NOT_READABLE in str(cause)
        fenced = transactional and isinstance(cause, _FENCED)
        if denied or (fenced and not timed_out and not self._follows_a_lost_one):
            return SinkError(self._sentence(cause))
        broken = Broken(_phrase(cause))
        broken.passes = timed_out or isinstance(cause, errors.RetriableError)
        return broken

    def _sentence(self, error: Exception) -> str:
        name = self.transactional_id
        if isinstance(error, errors.TransactionalIdAuthorizationFailedError):
            return (
                f"not authorized to use the transactional_id {name}: grant Write and Describe on it, or set "
                "transactional_id: none, which may write lines twice after a restart"
            )
        if isinstance(error, errors.GroupAuthorizationFailedError):
            return f"not authorized to use the group {name}, which marks the commits: grant Read on it"
        if _NOT_READABLE in str(error):
            return "not authorized to read the topic, as the marker of a commit requires: grant Read on it"
        if isinstance(error, errors.AuthorizationError):
            return "not authorized to write to the topic: grant Write on it"
        if isinstance(error, _FENCED):
            return (
                f"another process writes with the transactional_id {name} and has fenced this one off: give each "
                "daemon its own"
            )
        if isinstance(error, errors.InvalidTransactionTimeoutError) or "InvalidTransactionTimeout" in str(error):
            return (
                f"the broker allows no transactions of {self._timeout:.0f} s: set transaction_timeout_ms under options "
                "to at most its transaction.max.timeout.ms"
            )
        return f"the broker refuses the lines ({error}); start again, nothing is lost"

    def _too_large(self, line: Line) -> str:
        limit = self.found.largest
        at_most = "more than" if limit is None else f"more than the {limit:,} of"
        partition, offset = line.position[1:3]
        return (
            f"the line of the record at partition {partition}, offset {offset:,} takes "
            f"{len(line.value):,} bytes, {at_most} its max.message.bytes (or max_request_size under "
            "options): raise that, or lower limits.max_record_bytes"
        )

    def verify(self) -> bool:
        """Return whether lines can be sent; raises where the topic is gone or another one."""
        cluster = self._network.cluster
        for node in cluster.brokers():
            # The client does not try again, and a wait for this broker would never end.
            if self._network.connections.auth_failure(node.node_id) is not None:
                raise SinkError("the broker refuses credentials that it accepted before; start again, nothing is lost")
        if cluster.partitions_for_topic(self._topic):
            self._missing_since = None
            number = cluster.topic_id(self._topic)
            if number is not None and str(number) != self.found.stream.rpartition("/")[2]:
                raise SinkError(
                    "the topic was deleted and created again while it was written; start again to write to it"
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

    def failure(self) -> str:
        """Return why no broker answers, as a phrase."""
        return self._network.connections.failure or "no answer"

    def close(self) -> None:
        """End the connection within seconds; what was not acknowledged may be in the topic or not."""
        # The producer would wait for what it cannot send.
        self._producer._sender.force_close()
        with contextlib.suppress(errors.KafkaError):
            self._producer.close(timeout=_CLOSE_SECONDS)


def producer_settings(servers: list[str], compression: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a producer is made with; raises `ValueError` for what cannot be set, or is not installed."""
    if compression in ("lz4", "snappy") and not getattr(codec, f"has_{compression}")():
        raise ValueError(f"compression {compression} is not installed: pip install 'streamkernel[kafka-codecs]'")
    settings = client_settings(servers, {**_DEFAULTS, **options}, OUTPUT_RESERVED)
    return {**settings, **_ALWAYS, "compression_type": compression}


def connect_producer(
    topic: str, settings: Mapping[str, Any], transactional_id: str | None, attempt: int
) -> TopicProducer:
    """Return an initialized producer; raises `Unreachable` or `ConnectorError`."""
    found = find_topic(topic, settings, attempt)
    by = {} if transactional_id is None else {"transactional_id": transactional_id}
    producer = TopicProducer(topic, {**settings, **by}, found, attempt)
    try:
        producer.initialize()
    except BaseException:
        producer.close()
        raise
    return producer


def _follows(error: Exception) -> bool:
    """Return whether a line failed only because another one did."""
    # kafka-python has no class of its own for a line that was refused with another one of its batch.
    return type(error) is errors.KafkaError or isinstance(
        error, errors.IllegalStateError | errors.TransactionAbortedError
    )


def _phrase(error: Exception) -> str:
    reason = error.args[0] if error.args and error.args[0] else getattr(error, "description", "") or "no reason given"
    return f"{type(error).__name__}: {reason}"
