"""A Kafka cluster by its address, whoever started it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    OffsetSpec,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import InvalidReplicationFactorError, UnknownTopicOrPartitionError


class Cluster:
    """What a test does to a cluster besides producing and consuming.

    Parameters
    ----------
    bootstrap
        ``host:port`` of a listener without authentication.

    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def admin(self) -> KafkaAdminClient:
        """Connect to administer: a context manager."""
        return KafkaAdminClient(bootstrap_servers=self.bootstrap, reconnect_backoff_max_ms=200)

    def create_topic(self, name: str, partitions: int = 1, **config: object) -> None:
        """Make a topic, and wait until every partition has a leader.

        Parameters
        ----------
        name
            The name.
        partitions
            How many.
        config
            The topic's own settings, ``_`` for ``.``: ``cleanup_policy="compact"``.

        """
        configs = {key.replace("_", "."): str(value) for key, value in config.items()}
        topics = {name: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}}

        def made() -> bool:
            try:
                admin.create_topics(topics, wait_for_metadata=True)
            except (
                InvalidReplicationFactorError
            ):  # a busy machine starved the broker: until its next heartbeat it is out
                return False
            return True

        with self.admin() as admin:
            _until(made, f"the topic {name}")

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until it is gone."""
        with self.admin() as admin:
            admin.delete_topics([name])
            _until(lambda: name not in admin.list_topics(), f"the topic {name} to be gone")

    def end_offsets(self, name: str) -> dict[int, int]:
        """Tell by partition the offset the next record will get."""
        with self.admin() as admin:
            [topic] = admin.describe_topics([name])
            if topic["error_code"]:
                raise UnknownTopicOrPartitionError(name)
            asked = {TopicPartition(name, each["partition_index"]): OffsetSpec.LATEST for each in topic["partitions"]}
            return {each.partition: found.offset for each, found in sorted(admin.list_partition_offsets(asked).items())}

    def delete_records(self, name: str, before: Mapping[int, int]) -> None:
        """Delete, as retention would, the records before an offset, by partition."""
        with self.admin() as admin:
            admin.delete_records({TopicPartition(name, partition): offset for partition, offset in before.items()})

    def committed(self, group: str) -> dict[int, int]:
        """Tell the offsets that a group has, by partition of its one topic."""
        with self.admin() as admin:
            return {place.partition: found.offset for place, found in admin.list_group_offsets(group)[group].items()}

    def allow(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
    ) -> None:
        """Let a user do something, and wait until the broker knows.

        Parameters
        ----------
        user
            Who.
        operations
            Names such as ``"read"``, ``"write"`` and ``"describe"``; everything if there are none.
        topic, group, transactional_id
            With what; literally, so ``"*"`` is all of them.

        """
        resources = {
            ResourceType.TOPIC: topic,
            ResourceType.GROUP: group,
            ResourceType.TRANSACTIONAL_ID: transactional_id,
        }
        rules = [
            ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
            for kind, name in resources.items()
            if name is not None
            for operation in ([ACLOperation[each.upper()] for each in operations] or [ACLOperation.ALL])
        ]
        everything = ACLFilter(
            None,
            None,
            ACLOperation.ANY,
            ACLPermissionType.ANY,
            ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
        )
        with self.admin() as admin:
            failed = admin.create_acls(rules)["failed"]
            assert not failed, failed
            _until(lambda: set(rules) <= set(admin.describe_acls(everything)[0]), "the rules to be known")


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)
