"""A topic of Kafka, read by partitions and offsets with kafka-python's consumer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from kafka import KafkaConsumer, TopicPartition, errors

from streamkernel.connectors.kafka.base.client import Unreachable, connect
from streamkernel.connectors.kafka.base.fetched import FetchedRecords, Unreadable
from streamkernel.connectors.kafka.base.messages import Messages
from streamkernel.connectors.ports import ConnectorError, SourceError

__all__ = ["Bounds", "ConnectTopic", "KafkaTopic", "OutOfRange"]

ConnectTopic: TypeAlias = Callable[[str, Mapping[str, Any], int], "KafkaTopic"]
"""Makes a topic, as `KafkaTopic` does."""

_REQUEST_MS = 5000
_PATIENCE, _PATIENCE_AFTER_FAILURE = 5.0, 1.0
# Brokers hear of a new topic one after the other.
SETTLING_SECONDS = 2.0
# Each poll costs a round trip between the client's threads, and brings mostly messages of one partition.
_MOST_MESSAGES = 2048


class Bounds(NamedTuple):
    """The offsets of the first message of a partition, and of the next one to come.

    For a reader of committed messages, a partition ends before the first transaction that is still open.
    """

    first: int
    end: int


class OutOfRange(Exception):
    """A partition does not have the offset at which reading continues."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.partition = partition


class KafkaTopic:
    """A connected topic; any of its methods may raise `Unreachable` or `SourceError`.

    Parameters
    ----------
    settings
        The settings of `kafka.KafkaConsumer`.
    attempt
        How many attempts to connect failed before.

    Attributes
    ----------
    identity
        ``"cluster/topic/number"``: the stream of its positions.
    partitions
        All partitions: those at the beginning, and those that came later and have a leader.

    """

    def __init__(self, name: str, settings: Mapping[str, Any], attempt: int = 0) -> None:
        self.name = name
        self._settings = {**settings, "max_poll_records": _MOST_MESSAGES}
        self._consumer, self._network = connect(KafkaConsumer, self._settings, attempt)
        self._consumer._fetcher.PartitionRecords = FetchedRecords
        self._cluster = self._network.cluster
        self._wait: float = self._consumer.config["fetch_max_wait_ms"] / 1000
        self._missing_since: float | None = None
        try:
            self._find()
            self.partitions = frozenset(self._cluster.partitions_for_topic(name))
            self.identity = f"{self._cluster.cluster_id}/{name}/{self._id()}"
        except BaseException:
            self.close()
            raise

    def _find(self) -> None:
        """Ask for the topic until it is there, for a moment."""
        try:
            self._cluster.set_topics([self.name])
        except (ValueError, TypeError) as error:
            raise SourceError(str(error)) from None
        deadline = time.monotonic() + SETTLING_SECONDS
        while True:
            self.refresh()
            if self._cluster.partitions_for_topic(self.name):
                return
            if time.monotonic() > deadline:
                raise SourceError("the cluster has no such topic: check the name, or create it first")
            time.sleep(0.2)

    def refresh(self) -> None:
        """Ask the cluster for the metadata of the topic."""
        future = self._cluster.request_update()
        with self._asking():
            try:
                self._network.connections.run(self._network.connections.wait_for, future, _REQUEST_MS)
            except (errors.UnknownTopicOrPartitionError, errors.LeaderNotAvailableError):
                return
            except errors.InvalidTopicError:
                raise SourceError("the cluster does not accept this topic name") from None
        if self.name in self._cluster.unauthorized_topics:
            raise self._not_authorised()

    def _id(self) -> str:
        # Brokers before 2.8 give their topics no numbers.
        return str(self._cluster.topic_id(self.name) or "-")

    def _places(self, partitions: Iterable[int]) -> list[TopicPartition]:
        return [TopicPartition(self.name, partition) for partition in partitions]

    def bounds(self, partitions: Iterable[int]) -> dict[int, Bounds]:
        """Return where partitions begin and end, as the broker says."""
        places = self._places(partitions)
        if not places:
            return {}
        with self._asking():
            first = self._consumer.beginning_offsets(places, timeout_ms=_REQUEST_MS)
            end = self._consumer.end_offsets(places, timeout_ms=_REQUEST_MS)
        return {place.partition: Bounds(first[place], end[place]) for place in places}

    def high_watermark(self, partition: int) -> int:
        """Return where a partition ends, including transactions that are still open, as the broker says."""
        [place] = self._places([partition])
        other, _ = connect(KafkaConsumer, {**self._settings, "isolation_level": "read_uncommitted"})
        try:
            with self._asking():
                return int(other.end_offsets([place], timeout_ms=_REQUEST_MS)[place])
        finally:
            other.close(autocommit=False, timeout_ms=1000)

    def add(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions too, from these offsets on."""
        self._consumer.assign([*self._consumer.assignment(), *self._places(offsets)])
        for partition, offset in offsets.items():
            self.seek(partition, offset)

    def seek(self, partition: int, offset: int) -> None:
        """Read a partition from another offset on."""
        self._consumer.seek(TopicPartition(self.name, partition), offset)

    def poll(self, seconds: float) -> Mapping[int, Messages]:
        """Return messages by partition; raises `Unreadable` and `OutOfRange`, each once for its cause."""
        try:
            found = self._consumer.poll(timeout_ms=round(1000 * seconds))
        except Unreadable as damage:
            # A damaged batch may lie about its length, but not beyond the end of its partition.
            damage.end = max(damage.first + 1, min(damage.end, self.end(damage.partition) or damage.end))
            raise
        except errors.OffsetOutOfRangeError as error:
            ((place, _),) = error.args[0].items()
            raise OutOfRange(place.partition) from None
        except errors.LogTruncationError as error:
            raise self._truncated(error) from None
        except errors.RetriableError:
            return {}
        except (errors.KafkaError, RuntimeError) as error:
            raise self._failure_of(error) from None
        return {place.partition: Messages.joined(chunks) for place, chunks in found.items()}

    def reached(self, partition: int) -> int:
        """Return the offset at which reading a partition continues."""
        try:
            return int(self._consumer.position(TopicPartition(self.name, partition), timeout_ms=0))
        except errors.LogTruncationError as error:
            raise self._truncated(error) from None

    def end(self, partition: int) -> int | None:
        """Return where a partition ended when it was last read; None before."""
        offset = self._consumer.highwater(TopicPartition(self.name, partition))
        return None if offset is None else int(offset)

    @property
    def patience(self) -> float:
        """Seconds within which a healthy broker answers; fewer if a connection failed since the last answer."""
        known = self._network.connections
        return self._wait + (_PATIENCE_AFTER_FAILURE if known.failed > known.heard else _PATIENCE)

    def heard(self) -> float:
        """Return when a broker last answered anything, by the monotonic clock."""
        return self._network.connections.heard

    def failure(self) -> str:
        """Return why the last connection failed, as a phrase."""
        return self._network.connections.failure or "no answer"

    def verify(self) -> None:
        """Raise `SourceError` if the topic is known to be deleted, or deleted and created again."""
        if self._cluster.partitions_for_topic(self.name):
            self._missing_since = None
            # A partition without a leader cannot be asked where it begins.
            self.partitions |= frozenset(self._cluster.available_partitions_for_topic(self.name) or ())
            if self._id() != self.identity.rpartition("/")[2]:
                raise SourceError("the topic was deleted and created again while it was read")
        elif self.name in self._cluster.unauthorized_topics:
            raise self._not_authorised()
        elif self._missing_since is None:
            self._missing_since = time.monotonic()
            self._cluster.request_update()
        elif time.monotonic() - self._missing_since > SETTLING_SECONDS:
            raise SourceError("the topic was deleted while it was read")

    def close(self) -> None:
        """End the connection, within seconds."""
        self._consumer.close(autocommit=False, timeout_ms=1000)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (errors.KafkaError, RuntimeError) as error:
            raise self._failure_of(error) from None

    def _failure_of(self, error: Exception) -> Exception:
        """Return `Unreachable` for an error that may pass, `SourceError` for another one."""
        if isinstance(error, errors.AuthorizationError):
            return self._not_authorised()
        if isinstance(error, errors.RetriableError | RuntimeError):
            return Unreachable(self.failure())
        return SourceError(f"the client of Kafka failed: {type(error).__name__}: {error}")

    def _not_authorised(self) -> ConnectorError:
        user = self._consumer.config["sasl_plain_username"]
        who = f"the user {user}" if user else "a user without a name"
        return SourceError(
            f"{who} is not authorized to read the topic: grant it Read and Describe, or check sasl_plain_username "
            "under options"
        )

    def _truncated(self, error: Any) -> SourceError:
        # A topic that was created again looks the same, and brokers hear of that one after the other.
        deadline = time.monotonic() + SETTLING_SECONDS
        while True:
            self.refresh()
            self.verify()
            if self._missing_since is None and time.monotonic() > deadline:
                break
            time.sleep(0.2)
        cuts = ", ".join(
            f"partition {place.partition}" + ("" if there is None else f" to offset {there.offset}")
            for place, there in sorted(error.divergent_offsets.items())
        )
        return SourceError(
            f"the log was truncated before the offset that was read ({cuts}), as after an unclean leader election: "
            "the topic lost records that were learned. Start over with --fresh, or restore an older checkpoint"
        )
