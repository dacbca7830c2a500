"""A session over kafka-python's producer, with its odd corners smoothed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaProducer, TopicPartition, errors
from kafka.producer.transaction_manager import ProducerIdAndEpoch

from connectors.kafka.base.client import NetworkClient, Unreachable
from connectors.kafka.writing.emitted import Emitted
from connectors.kafka.writing.mark import Producer
from connectors.kafka.writing.session import Broken, Line, Receipt, Session
from connectors.kafka.writing.stamps import Stamp
from connectors.kafka.writing.survey import Survey
from connectors.ports import ConnectorError, SinkError

__all__ = ["ProducerSession", "shut_out"]

# A topic that is made anew is away for a moment.
_SETTLING_SECONDS = 3.0
_CLOSE_SECONDS = 1.0
_WAIT_SECONDS = 5.0
# What is known of the topic is asked for anew all the time; that it was not, so many times over, is no accident.
_ANSWERS_MISSED = 3
_TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
_FENCED = (errors.ProducerFencedError, errors.InvalidProducerEpochError)


def shut_out(transactional_id: str) -> str:
    """Say that another process has the transactional id now."""
    return (
        f"another process writes with the transactional_id {transactional_id} and has shut this one out: "
        "give each daemon one of its own"
    )


class ProducerSession(Session):
    """One producer of kafka-python.

    It is used up by its first failure. Left alone, kafka-python would give up the failed lines, take another number
    for itself and go on with the lines behind them.

    Parameters
    ----------
    topic
        The name of the topic.
    producer
        Connected, with idempotence.
    link
        Its network side.
    survey
        How the topic stood.
    writer
        What to sign the lines with.

    """

    def __init__(self, topic: str, producer: KafkaProducer, link: NetworkClient, survey: Survey, writer: str) -> None:
        self.stream = survey.stream
        self.writer = writer
        self.partitions = survey.partitions
        self.largest = survey.largest
        self.producer = None
        self.ends: dict[int, int] = {}
        self.emitted = Emitted()
        self.earlier: dict[tuple[str, int], int] = {}
        self.unproven: set[int] = set()
        self._topic = topic
        self._producer = producer
        self._link = link
        self._survey = survey
        self._stamp = Stamp(writer)
        self._transactional_id = producer.config["transactional_id"]
        self.transactional = self._transactional_id is not None
        self.transaction_seconds = producer.config["transaction_timeout_ms"] / 1000
        if self.transactional:
            # Left alone, kafka-python would take the id back from whoever has shut it out, lines under way given up.
            producer._transaction_manager._supports_epoch_bump = lambda: False
        self._begun = 0.0
        self._missing_since: float | None = None

    def introduce(self) -> None:
        """Have the broker know the producer: as the one of its transactional id, which shuts any other out, or as new.

        Raises
        ------
        Unreachable
            When the broker does not answer.
        ConnectorError
            When it does not let this producer in.

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

    def succeed(self, predecessor: Producer, sequences: Mapping[int, int]) -> None:
        """Go on as the producer of an earlier process.

        A broker takes the lines of a producer in a row or not at all. Where both say that they are the same one, and
        a request of the earlier process is still under way, only one of the two can come next: the other is refused.

        Parameters
        ----------
        predecessor
            Who it was.
        sequences
            By partition, the number of the next line; 0 where the broker does not know of any.

        """
        manager = self._producer._transaction_manager
        manager.set_producer_id_and_epoch(ProducerIdAndEpoch(predecessor.number, predecessor.epoch))
        for partition in range(self.partitions):
            manager.set_sequence_number(TopicPartition(self._topic, partition), sequences.get(partition, 0))
        self.producer = predecessor
        self.unproven = set(range(self.partitions))

    @property
    def sequences(self) -> dict[int, int]:
        """By partition, the number of the next line; see `Session.sequences`."""
        manager = self._producer._transaction_manager
        return {
            partition: manager.sequence_number(TopicPartition(self._topic, partition))
            for partition in range(self.partitions)
        }

    def send(self, line: Line) -> Receipt:
        """Give a line to the producer; see `Session.send`."""
        value, position = line
        try:
            return self._producer.send(  # type: ignore[no-any-return]
                self._topic,
                value=value,
                key=self._stamp.key(position),
                headers=self._stamp.headers(position),
                partition=position.partition % self.partitions,
            ).add_errback(self._failed)
        except (errors.KafkaError, ValueError) as error:
            raise self.explain(error, line) from None

    def _failed(self, error: Exception) -> None:  # noqa: ARG002 - the line has it as well
        # Called on the producer's own thread: nothing that comes behind the failed lines is sent any more.
        self._producer._sender.force_close()

    def prove(self, line: Line) -> int:
        """Send a line and read it back; see `Session.prove`."""
        partition = line.position.partition % self.partitions
        receipt: Any = self.send(line)
        try:
            offset = int(receipt.get().offset)
        except errors.KafkaError as error:
            raise self.explain(error, line) from None
        # Two lines with the same number are one for the broker, and it takes the second for a repetition of the first.
        try:
            found = self._survey.origin_at(partition, offset, self.writer)
        except (Unreachable, ConnectorError) as error:
            raise Broken(str(error)) from None
        if found != line.position:
            raise Broken("a line of an earlier process came in between")
        self.unproven.discard(partition)
        if not self.unproven:
            self._survey.close()
        return offset

    def follows(self, error: Exception) -> bool:
        """Say whether a line failed only because another one did; see `Session.follows`."""
        return isinstance(error, errors.IllegalStateError | errors.TransactionAbortedError)

    def wait(self, seconds: float) -> None:
        """Wait for what was given; see `Session.wait`."""
        with contextlib.suppress(errors.KafkaError):
            self._producer.flush(timeout=seconds)

    def begin(self) -> None:
        """Begin a transaction; see `Session.begin`."""
        self._begun = time.monotonic()
        try:
            self._producer.begin_transaction()
        except errors.KafkaError as error:
            raise self.explain(error) from None

    def commit(self) -> None:
        """Commit it; see `Session.commit`."""
        try:
            self._producer.commit_transaction()
        except errors.KafkaError as error:
            raise self.explain(error) from None

    def explain(self, error: Exception, line: Line | None = None) -> Exception:
        """Say what a failure means; see `Session.explain`."""
        if isinstance(error, _TOO_LARGE) and line is not None:
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
            return f"not authorised to use the transactional_id {name}: grant Write and Describe on it"
        if isinstance(error, errors.AuthorizationError):
            return "not authorised to write to the topic: grant Write on it"
        if isinstance(error, _FENCED):
            if time.monotonic() - self._begun > self.transaction_seconds:
                return (
                    f"the broker ended a transaction that was open for more than {self.transaction_seconds:.0f} s "
                    "(transaction_timeout_ms under options); start again, nothing is lost"
                )
            return shut_out(str(name))
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
            f"the line of the record at partition {partition}, offset {offset:,} takes {len(line.value):,} bytes, "
            f"{at_most} its max.message.bytes (or max_request_size under options): raise that, or lower "
            "limits.max_record_bytes"
        )

    def verify(self) -> bool:
        """Look at the topic as it is known by now; see `Session.verify`."""
        cluster = self._link.cluster
        for node in cluster.brokers():
            # It is not tried again, and whoever waits for this broker waits for ever.
            if self._link.connections.auth_failure(node.node_id) is not None:
                raise self._refused_anew()
        if cluster.partitions_for_topic(self._topic):
            self._missing_since = None
            number = cluster.topic_id(self._topic)
            if number is not None and str(number) != self.stream.rpartition("/")[2]:
                raise self._made_anew()
            return True
        if self._topic in cluster.unauthorized_topics:
            raise SinkError("not authorised to write to the topic any more: grant Write on it")
        if self._missing_since is None:
            self._missing_since = time.monotonic()
            cluster.request_update()
        elif time.monotonic() - self._missing_since > _SETTLING_SECONDS:
            raise SinkError("the topic was deleted while it was written")
        return False

    def _refused_anew(self) -> Exception:
        if self.transactional:
            return SinkError("the broker refuses the credentials it took before; start again, nothing is lost")
        return Broken("the broker refuses the credentials it took before")

    def _made_anew(self) -> Exception:
        if self.transactional:
            return SinkError("the topic was deleted and made anew while it was written; start again to write to it")
        return Broken("the topic was deleted and made anew")

    def answered(self) -> bool:
        """Say whether a broker has answered of late; see `Session.answered`."""
        connections = self._link.connections
        seconds = _ANSWERS_MISSED * connections.config["metadata_max_age_ms"] / 1000
        return bool(time.monotonic() - connections.heard < max(seconds, _WAIT_SECONDS))

    def failure(self) -> str:
        """Say why no broker answers; see `Session.failure`."""
        return self._link.connections.failure or "no answer"

    def abandon(self) -> None:
        """End the connection; see `Session.abandon`."""
        self._survey.close()
        # By itself the producer would wait for what it cannot send, and once more at the end of the process.
        self._producer._sender.force_close()
        with contextlib.suppress(errors.KafkaError):
            self._producer.close(timeout=_CLOSE_SECONDS)
        self._producer._closed = True


def _phrase(error: Exception) -> str:
    said = error.args[0] if error.args and error.args[0] else getattr(error, "description", "") or "no reason given"
    return f"{type(error).__name__}: {said}"
