"""One producer of an output topic, from its connection to its first failure."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition, codec, errors

from streamkernel.connectors.kafka.base.client import Unreachable, connect
from streamkernel.connectors.kafka.base.options import OUTPUT_RESERVED, TRANSACTION_TIMEOUT_MS, client_settings
from streamkernel.connectors.kafka.writing.agreement import Marker
from streamkernel.connectors.kafka.writing.line import Line
from streamkernel.connectors.kafka.writing.producer_client import ProducerClient
from streamkernel.connectors.kafka.writing.topic import OutputTopic, find_topic, fitting
from streamkernel.connectors.ports import ConnectorError, SinkError

__all__ = ["Broken", "ProducerFactory", "Receipt", "TopicProducer"]

_BATCH_BYTES = 2**19
_DEFAULTS: Mapping[str, Any] = {
    # Large batches cost half as much a line as small ones.
    "linger_ms": 50,
    # The broker has the last word on how long a line may be.
    "max_request_size": 2**24,
    "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS,
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
# A topic that is created again is away for a moment.
_SETTLING_SECONDS = 3.0
_TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
_NOT_READABLE = "TxnOffsetCommitResponse: [Error 29]"
_FENCED = (errors.ProducerFencedError, errors.InvalidProducerEpochError)

Receipt: TypeAlias = Any
"""A `kafka.future.Future` of a sent line."""


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

    """

    def __init__(self, topic: str, settings: Mapping[str, Any], found: OutputTopic, attempt: int) -> None:
        self.found = found
        self.transactional_id: str | None = settings.get("transactional_id")
        self._topic = topic
        self._attempt = attempt
        self._settings = settings
        if found.largest is not None:
            # The broker would refuse a larger batch, and the client would send it again in halves.
            settings = {**settings, "batch_size": min(settings["batch_size"], found.largest)}
        known = fitting(KafkaProducer, settings)
        self._producer, self._network = connect(KafkaProducer, known, attempt, ProducerClient)
        self._manager = self._producer._transaction_manager
        self._timeout = self._producer.config["transaction_timeout_ms"] / 1000
        # By itself, kafka-python would take the id back from the process that fenced this one.
        self._renewing = self._ended = False
        if self.transactional_id is not None:
            self._manager._supports_epoch_bump = lambda: self._renewing
        self._begun = 0.0
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

    def begin(self, patient: Callable[[], bool]) -> None:
        """Begin a transaction, as long as `patient` says so; raises as `commit`."""
        try:
            if self._ended:
                self._renew(patient)
            self._begun = time.monotonic()
            self._producer.begin_transaction()
        except errors.KafkaError as error:
            raise self.explain(error) from None

    def _renew(self, patient: Callable[[], bool]) -> None:
        """Get another epoch: a request of the last transaction that was held up cannot end the next one."""
        manager = self._manager
        self._renewing = True
        try:
            manager.bump_producer_id_and_epoch()
            self._producer._sender.wakeup()
            while manager.is_bumping_epoch():
                if not patient():
                    raise Unreachable(self.failure())
                time.sleep(0.002)
        finally:
            self._renewing = False
        if manager.has_error():
            raise manager.last_error
        self._ended = False

    def send(self, partition: int, **message: Any) -> Receipt:
        """Give a message to the producer, which sends it when it can; raises an error of kafka-python."""
        sent = self._producer.send(self._topic, partition=partition % self.found.partitions, **message)
        return sent.add_errback(self._failed)

    def _failed(self, error: Exception) -> None:  # noqa: ARG002 - the receipt has it as well
        # Called on the producer's own thread: nothing after the failed lines is sent any more.
        self._producer._sender.force_close()

    def flush(self, seconds: float) -> None:
        """Send at once what was given, and wait until it is acknowledged, but no longer than some seconds."""
        with contextlib.suppress(errors.KafkaError):
            self._producer.flush(timeout=seconds)

    def commit(self, marker: Marker, patient: Callable[[], bool]) -> None:
        """Commit the transaction with a marker, as long as `patient` says so.

        Raises `SinkError` or `Broken`, and `Unreachable` where the patience is over.
        """
        place = OffsetAndMetadata(marker.number, f"{marker.writer} {marker.last}".rstrip(), -1)
        manager = self._manager
        try:
            # The public methods wait forever for an answer.
            for step in (
                lambda: manager.send_offsets_to_transaction(
                    {TopicPartition(self._topic, 0): place}, manager.transactional_id
                ),
                manager.begin_commit,
            ):
                result = step()
                self._producer._sender.wakeup()
                while not result.wait(timeout_ms=100):
                    if not patient():
                        raise Unreachable(self.failure())
            self._ended, self._follows_a_lost_one = True, False
        except errors.KafkaError as error:
            raise self.explain(error) from None

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


class ProducerFactory:
    """Makes the producers of a topic, one after the other; its parameters are those of `KafkaSink`."""

    def __init__(self, topic: str, servers: list[str], compression: str | None, options: Mapping[str, Any]) -> None:
        if compression in ("lz4", "snappy") and not getattr(codec, f"has_{compression}")():
            raise ValueError(f"compression {compression} is not installed: pip install 'streamkernel[kafka-codecs]'")
        settings = client_settings(servers, {**_DEFAULTS, **options}, OUTPUT_RESERVED)
        self._topic = topic
        self._settings = {"batch_size": _BATCH_BYTES, **settings, **_ALWAYS, "compression_type": compression}

    def find(self, attempt: int = 0) -> OutputTopic:
        """Return what the cluster says about the topic; see `find_topic`."""
        return find_topic(self._topic, self._settings, attempt)

    def connect(self, transactional_id: str | None, attempt: int) -> TopicProducer:
        """Return an initialized producer; raises `Unreachable` or `ConnectorError`."""
        found = self.find(attempt)
        by = {} if transactional_id is None else {"transactional_id": transactional_id}
        producer = TopicProducer(self._topic, {**self._settings, **by}, found, attempt)
        try:
            producer.initialize()
        except BaseException:
            producer.close()
            raise
        return producer


def _phrase(error: Exception) -> str:
    reason = error.args[0] if error.args and error.args[0] else getattr(error, "description", "") or "no reason given"
    return f"{type(error).__name__}: {reason}"
