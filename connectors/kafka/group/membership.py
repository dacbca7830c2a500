"""Membership in a consumer group, which assigns partitions of a topic to this process.

The member reads nothing itself: its partitions are paused, and it never asks the group where to continue.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition, errors
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streamkernel.connectors.kafka.base.client import NetworkClient, Unreachable, connect
from streamkernel.connectors.kafka.base.options import client_settings
from streamkernel.connectors.kafka.base.outage import Outage
from streamkernel.connectors.kafka.consumer.topic import KafkaTopic
from streamkernel.connectors.kafka.group.assignment import Assignment, HeldPartitions
from streamkernel.connectors.kafka.group.pending_offsets import PendingOffsets
from streamkernel.connectors.kafka.group.refusal import refusal
from streamkernel.connectors.ports import ConnectorError, SourceError

__all__ = ["Membership"]

_log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
_PROBE_SECONDS = 5.0
LONGEST_PAUSE = 2.0
# A client finds brokers again that come back at the addresses it knows. Only for a cluster that moved it is worth
# giving up the place in the group, which keeps the others waiting until the group has noticed.
_ANEW_SECONDS = 600.0


class Membership:
    """Holds a place in a consumer group, on a thread of its own.

    What is kept from one assignment to the next stays, so that few partitions move: the assignment is kafka-python's
    "sticky". Its "cooperative-sticky" moves as few and takes two rounds for it, the second one for partitions that
    their holder has given up in the first; here something better than the group's word keeps two processes from
    learning one partition, so the new holder may begin at once.

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
        # While the group waits for another member there are no heartbeats: other answers must say that all is well.
        age = min(settings["metadata_max_age_ms"], session // 3)
        self._settings = {**settings, "metadata_max_age_ms": age, "enable_auto_commit": False}
        self.partitions: frozenset[int] = frozenset()
        self._assignment = Assignment()
        self._outage = Outage(_log, self.describe())
        self._back_since: float | None = None
        self._offsets = PendingOffsets(topic)
        self._leaving = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-group", daemon=True)

    def open(self) -> None:
        """Begin to join the group; `turn` tells how that goes."""
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
        """Commit offsets by partition when it can be done, for the tools that watch groups."""
        self._offsets.put(offsets)

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
            raise SourceError(f"{self.describe()}: {refusal(error, consumer.config) or error}") from None
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
                self._leaving.wait(min(LONGEST_PAUSE, 0.2 * 2 ** min(attempt, 10)))
                attempt += 1
            except ConnectorError as error:
                self._fail(str(error))
                return
            except Exception as error:  # whatever it is, the daemon must hear of it, and not wait for ever
                _log.debug("the full traceback", exc_info=error)
                self._fail(f"the client of Kafka failed: {type(error).__name__}: {error}")
                return

    def _connect(self, attempt: int) -> tuple[Any, NetworkClient]:
        if not self.partitions:
            # Only who reads a topic learns what is wrong with it; a group without a topic just waits.
            topic = KafkaTopic(self.topic, {**self._settings, "auto_offset_reset": "none"}, attempt)
            topic.close()
            self.partitions = topic.partitions
        settings = {
            **self._settings,
            "group_id": self.group,
            "partition_assignment_strategy": [StickyPartitionAssignor()],
            # Of no use to paused partitions, but without it they would be an error.
            "auto_offset_reset": "earliest",
        }
        consumer, network = connect(KafkaConsumer, settings, attempt)
        _join_in_order(consumer, self.topic)
        return consumer, network

    def _take_part(self, consumer: Any, network: NetworkClient) -> None:
        self._offsets.reconnect()
        try:
            consumer.subscribe([self.topic], listener=_AssignmentListener(self._assignment, consumer))
            while not self._leaving.is_set():
                self._poll(consumer)
                self._listen(network, consumer.config)
                self._offsets.commit(consumer, self._assignment.assigned())
            consumer.unsubscribe()
            self._closing.wait()
            self._offsets.commit_the_last(consumer)
        except BaseException:
            self._assignment.lose()
            raise
        finally:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _poll(self, consumer: Any) -> None:
        try:
            consumer.poll(timeout_ms=round(1000 * POLL_SECONDS))
        except (errors.KafkaError, RuntimeError) as error:
            refused = refusal(error, consumer.config)
            if refused is not None:
                raise refused from None
            _log.debug("polling failed: %s", error)
            self._leaving.wait(POLL_SECONDS)

    def _listen(self, network: NetworkClient, config: Mapping[str, Any]) -> None:
        """Check whether the group has heard nothing for so long that it may have given our partitions away."""
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
            # The first answer need not be the coordinator's: it must have had the time to say that we are out.
            self._back_since = self._back_since or now
            if now - self._back_since > 2 * config["heartbeat_interval_ms"] / 1000:
                self._assignment.reconnect()

    def _fail(self, reason: str) -> None:
        self._assignment.fail(SourceError(f"{self.describe()}: {reason}"))


def _join_in_order(consumer: Any, topic: str) -> None:
    """Make a client join the group once it knows the topic, and take up the answer.

    kafka-python (3.0) asks to join before it has heard which partitions there are: if it leads the group, it assigns
    none to anybody, and does it over when it knows. And where partitions were added, it holds the matter to be settled
    once it has asked: if the answer comes after the end of a poll, nobody takes it up, no heartbeat is sent any more,
    and the group puts the member out without its noticing.
    """
    coordinator, cluster = consumer._coordinator, consumer._cluster
    need_rejoin = coordinator.need_rejoin
    known = False

    def must_join() -> bool:
        nonlocal known
        known = known or bool(cluster.partitions_for_topic(topic))
        return known and (need_rejoin() or coordinator._join_task is not None)

    coordinator.need_rejoin = must_join


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
