"""Membership in a consumer group, which assigns partitions of a topic to this process.

The member reads nothing itself: its partitions are paused, and it never asks the group where to continue.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition, errors
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streamkernel.connectors.kafka.base.client import NetworkClient, Unreachable, connect
from streamkernel.connectors.kafka.base.options import client_settings
from streamkernel.connectors.kafka.base.outage import Outage
from streamkernel.connectors.kafka.base.topic import KafkaTopic
from streamkernel.connectors.kafka.group.assignment import Assignment, HeldPartitions
from streamkernel.connectors.ports import ConnectorError, SourceError

__all__ = ["Membership"]

_log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
_PROBE_SECONDS = 5.0
LONGEST_PAUSE = 2.0
# Who leaves a group holds up the others until they notice. A client finds brokers again that return to the addresses it
# knows: only for a cluster that moved is another client worth that.
_ANEW_SECONDS = 600.0
_COMMIT_SECONDS = 1.0


class Membership:
    """Holds a place in a consumer group, on a thread of its own.

    The assignment is kafka-python's "sticky": few partitions move. "cooperative-sticky" moves as few in two rounds, so
    that no partition has two holders. Locks do that here, and the new holder may begin at once.

    Parameters
    ----------
    topic
        The name of the topic whose partitions the group shares.
    bootstrap_servers
        ``"host:port"``, several of them with commas between, or a list.
    group
        The name of the group.
    options
        Settings of kafka-python by its own names, such as ``session_timeout_ms``.

    Attributes
    ----------
    partitions
        Those the topic had when the member came; empty before.

    Raises
    ------
    ValueError
        For an option that is not the user's to set.

    """

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str | Sequence[str],
        group: str,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic = topic
        self.group = group
        self.servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
        settings = client_settings(self.servers.split(","), options or {})
        session = settings.get("session_timeout_ms", KafkaConsumer.DEFAULT_CONFIG["session_timeout_ms"])
        # While the group waits for another member there are no heartbeats: other answers must show that all is well.
        age = min(settings["metadata_max_age_ms"], session // 3)
        self._settings = {**settings, "metadata_max_age_ms": age, "enable_auto_commit": False}
        self.partitions: frozenset[int] = frozenset()
        self._assignment = Assignment()
        self._outage = Outage(_log, self.describe())
        self._back_since: float | None = None
        self._offsets: dict[int, int] = {}
        self._changed = threading.Lock()
        self._commit_again = 0.0
        self._leaving = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-group", daemon=True)

    def open(self) -> None:
        """Begin to join the group; `turn` returns what becomes of that."""
        self._thread.start()

    def turn(self, timeout: float) -> HeldPartitions:
        """Wait for a change for some seconds, and return which partitions are held, and which were lost.

        Raises
        ------
        SourceError
            When the group cannot be joined, or not be stayed in, and trying again would not help.

        """
        return self._assignment.turn(timeout)

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets by partition when the group takes them, for the tools that watch groups."""
        with self._changed:
            self._offsets.update(offsets)

    @property
    def health_problem(self) -> str | None:
        """Why the group is out of reach, one sentence; None where it is in reach."""
        reason = self._outage.reason
        return None if reason is None else f"{self.describe()}: no broker answers ({reason})"

    def describe(self) -> str:
        """Return a phrase such as ``"group mine on kafka topic clicks at broker:9092"``."""
        return f"group {self.group} on kafka topic {self.topic} at {self.servers}"

    def leave(self) -> None:
        """Give the partitions to the others at once; offsets can still be committed until `close`."""
        self._leaving.set()

    def close(self, seconds: float) -> None:
        """Leave the group, and end the connections within some seconds; closing twice does nothing."""
        self._leaving.set()
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def probe(self) -> str:
        """Ask for the group without joining it, which would disturb its members.

        Raises
        ------
        ConnectorError
            When the group cannot be used, or is not in reach.

        """
        place = TopicPartition(self.topic, 0)
        try:
            consumer, _ = self._connect(0)
            try:
                consumer.committed(place, timeout_ms=1000 * _PROBE_SECONDS)
            finally:
                consumer.close(autocommit=False, timeout_ms=1000)
        except (ConnectorError, Unreachable) as error:
            raise SourceError(f"{self.describe()}: {error}") from None
        except (errors.KafkaError, RuntimeError) as error:
            raise SourceError(f"{self.describe()}: {_refusal(error, consumer.config) or error}") from None
        return self.describe()

    def _run(self) -> None:
        attempt = 0
        while not self._leaving.is_set():
            try:
                consumer, network = self._connect(attempt)
                attempt = 0
                self._take_part(consumer, network)
            except Unreachable as error:
                self._outage.begin(str(error))
                self._leaving.wait(min(LONGEST_PAUSE, 0.2 * attempt))
                attempt += 1
            except ConnectorError as error:
                self._fail(str(error))
                return
            except Exception as error:  # whatever it is, the daemon must hear of it, and not wait forever
                _log.debug("the full traceback", exc_info=error)
                self._fail(f"the client of Kafka failed: {type(error).__name__}: {error}")
                return

    def _connect(self, attempt: int) -> tuple[Any, NetworkClient]:
        if not self.partitions:
            # Only a reader of a topic hears what is wrong with it; a group without its topic just waits.
            topic = KafkaTopic(self.topic, {**self._settings, "auto_offset_reset": "none"}, attempt)
            topic.close()
            self.partitions = topic.partitions
        settings = {
            **self._settings,
            "group_id": self.group,
            "partition_assignment_strategy": [StickyPartitionAssignor()],
            # Paused partitions have no use for it, but without it they would be an error.
            "auto_offset_reset": "earliest",
        }
        consumer, network = connect(KafkaConsumer, settings, attempt)
        _join_in_order(consumer, network, self.topic)
        return consumer, network

    def _take_part(self, consumer: Any, network: NetworkClient) -> None:
        try:
            consumer.subscribe([self.topic], listener=_AssignmentListener(self._assignment, consumer))
            while not self._leaving.is_set():
                self._poll(consumer)
                self._listen(network, consumer.config)
                self._commit(consumer, self._assignment.assigned())
            consumer.unsubscribe()
            self._closing.wait()
            with self._changed:
                consumer.assign([TopicPartition(self.topic, one) for one in self._offsets])
            # The group takes them if it has no members now, who would do it.
            self._commit(consumer, self._offsets.keys())
        except BaseException:
            self._assignment.lose()
            raise
        finally:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _commit(self, consumer: Any, mine: Collection[int]) -> None:
        """Commit what waits: a group takes offsets only of its members, and not while it is rebalancing."""
        with self._changed:
            offsets = {one: offset for one, offset in self._offsets.items() if one in mine}
        if not offsets or (time.monotonic() < self._commit_again and not self._closing.is_set()):
            return
        places = {TopicPartition(self.topic, one): OffsetAndMetadata(offset) for one, offset in offsets.items()}
        try:
            consumer.commit(places, timeout_ms=1000 * _COMMIT_SECONDS)
        except (errors.KafkaError, RuntimeError) as error:
            _log.debug("offsets could not be committed: %s", error)
            self._commit_again = time.monotonic() + _COMMIT_SECONDS
            return
        with self._changed:
            self._offsets = {one: offset for one, offset in self._offsets.items() if offsets.get(one) != offset}

    def _poll(self, consumer: Any) -> None:
        try:
            consumer.poll(timeout_ms=round(1000 * POLL_SECONDS))
        except (errors.KafkaError, RuntimeError) as error:
            refused = _refusal(error, consumer.config)
            if refused is not None:
                raise refused from None
            _log.debug("polling failed: %s", error)
            self._leaving.wait(POLL_SECONDS)

    def _listen(self, network: NetworkClient, config: Mapping[str, Any]) -> None:
        """Check whether the group heard nothing for so long that it may have given our partitions away."""
        now = time.monotonic()
        silence = now - network.connections.heard
        reason = network.connections.failure or f"the brokers were silent for {silence:.0f} s"
        if silence > _ANEW_SECONDS:
            raise Unreachable(reason)
        if silence > config["session_timeout_ms"] / 1000:
            self._back_since = None
            if self._assignment.in_reach:
                self._outage.begin(reason)
                self._assignment.cut_off()
        elif self._assignment.in_reach:
            self._outage.end()
        else:
            # The first answer need not be the coordinator's, which needs time to say that we are out.
            self._back_since = self._back_since or now
            if now - self._back_since > 2 * config["heartbeat_interval_ms"] / 1000:
                self._assignment.reconnect()

    def _fail(self, reason: str) -> None:
        self._assignment.fail(SourceError(f"{self.describe()}: {reason}"))


def _join_in_order(consumer: Any, network: NetworkClient, topic: str) -> None:
    """Make a client join the group once it knows the topic, and take up the answer.

    kafka-python (3.0) asks to join before it knows the partitions: if it leads the group, it assigns none to anybody.
    When partitions are added and the answer comes after the end of a poll, it never takes up the answer. It sends no
    more heartbeats, and the group puts the member out.
    """
    coordinator = consumer._coordinator
    need_rejoin = coordinator.need_rejoin
    known = False

    def must_join() -> bool:
        nonlocal known
        known = known or bool(network.cluster.partitions_for_topic(topic))
        return known and (need_rejoin() or coordinator._join_task is not None)

    coordinator.need_rejoin = must_join


def _refusal(error: Exception, config: Mapping[str, Any]) -> SourceError | None:
    """Return what an error of a consumer with a group means; None for one that may pass."""
    if isinstance(error, errors.GroupAuthorizationFailedError):
        user = config["sasl_plain_username"]
        who = f"the user {user}" if user else "a user without a name"
        return SourceError(f"{who} is not authorized to use the group: grant it Read on the group")
    if isinstance(error, errors.TopicAuthorizationFailedError):
        return SourceError("the right to read the topic was withdrawn: grant it Read and Describe")
    if isinstance(error, errors.InvalidSessionTimeoutError):
        return SourceError(
            f"the broker does not accept a session_timeout_ms of {config['session_timeout_ms']}: choose one between "
            "its group.min.session.timeout.ms and group.max.session.timeout.ms"
        )
    if isinstance(error, errors.InconsistentGroupProtocolError):
        return SourceError("the group has members of another kind: give source.group its own name")
    if isinstance(error, errors.GroupMaxSizeReachedError):
        return SourceError("the group has as many members as the broker allows (group.max.size)")
    if isinstance(error, errors.RetriableError | RuntimeError):
        return None
    return SourceError(f"the client of Kafka failed: {type(error).__name__}: {error}")


class _AssignmentListener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Passes on what the group decides; called on the client's thread, which sends the heartbeats and must not wait."""

    def __init__(self, assignment: Assignment, consumer: Any) -> None:
        self._assignment = assignment
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        """Do nothing: all partitions are revoked before each assignment, and most of them come back with it."""

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._consumer.pause(*assigned)
        self._assignment.assign([place.partition for place in assigned])

    def on_partitions_lost(self, lost: Collection[Any]) -> None:  # noqa: ARG002
        self._assignment.lose()
