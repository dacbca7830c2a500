"""Asks a cluster about an output topic, before a producer writes to it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, errors
from kafka.admin import ConfigResource, ConfigResourceType

from streamkernel.connectors.kafka.base.client import Unreachable, connect
from streamkernel.connectors.ports import ConnectorError

__all__ = ["OutputTopic", "find_topic", "fitting"]

# Brokers hear of a new topic one after the other.
_SETTLING_SECONDS = 2.0
_LIMITS = (
    *("max.message.bytes", "cleanup.policy"),
    *("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"),
)


class OutputTopic(NamedTuple):
    """What a cluster says about a topic.

    Attributes
    ----------
    stream
        The topic: ``"cluster/topic/number"``.
    partitions
        How many there are.
    largest
        The longest batch the topic takes, in bytes; None where the cluster does not say.
    null_keys
        Whether the topic takes messages without a key, if known.
    behind, ahead
        How many milliseconds a timestamp may differ from the time of the broker, if known.

    """

    stream: str
    partitions: int
    largest: int | None = None
    null_keys: bool = True
    behind: float = math.inf
    ahead: float = math.inf


def fitting(make: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings that a class of kafka-python knows: an option may be for another one."""
    return {name: value for name, value in settings.items() if name in make.DEFAULT_CONFIG}


def find_topic(name: str, settings: Mapping[str, Any], attempt: int = 0) -> OutputTopic:
    """Return what the cluster says about a topic, without writing to it or fencing another producer.

    Raises
    ------
    Unreachable
        Where no broker answers.
    ConnectorError
        Where there is no such topic, or writing to it is not allowed.

    """
    with contextlib.ExitStack() as stack:
        admin, network = connect(KafkaAdminClient, fitting(KafkaAdminClient, settings), attempt)
        stack.callback(admin.close)
        try:
            about = _describe(admin, name)
            cluster = admin.describe_cluster()["cluster_id"]
        except (errors.RetriableError, RuntimeError):
            raise Unreachable(network.connections.failure or "no answer") from None
        except errors.KafkaError as error:
            raise ConnectorError(f"the broker refuses to describe the topic ({error})") from None
        # Brokers before 2.8 give their topics no numbers.
        stream = f"{cluster}/{name}/{about.get('topic_id') or '-'}"
        return OutputTopic(stream, len(about["partitions"]), **_limits(admin, name))


def _describe(admin: Any, name: str) -> Mapping[str, Any]:
    deadline = time.monotonic() + _SETTLING_SECONDS
    while True:
        [about] = admin.describe_topics([name])
        error = errors.for_code(about["error_code"])
        rights = about.get("authorized_operations")
        if error is errors.TopicAuthorizationFailedError or (rights and "WRITE" not in rights):
            raise ConnectorError("not authorized to write to the topic: grant Write on it")
        if error is errors.InvalidTopicError:
            raise ConnectorError("the cluster does not accept this topic name")
        if error is errors.NoError and about["partitions"]:
            found: Mapping[str, Any] = about
            return found
        if time.monotonic() > deadline:
            raise ConnectorError("the cluster has no such topic: check the name, or create it first")
        time.sleep(0.2)


def _limits(admin: Any, name: str) -> dict[str, Any]:
    """Return what the topic takes; nothing where this may not be asked."""
    wanted = ConfigResource(ConfigResourceType.TOPIC, name, list(_LIMITS))
    try:
        answer = admin.describe_configs([wanted], config_filter="all")["topic"][name]
        found = {key: one["value"] for key, one in answer.items()}
        return {
            "largest": int(found["max.message.bytes"]),
            "null_keys": "compact" not in found["cleanup.policy"],
            "behind": float(found.get("message.timestamp.before.max.ms", math.inf)),
            "ahead": float(found.get("message.timestamp.after.max.ms", math.inf)),
        }
    except (errors.KafkaError, RuntimeError, LookupError, TypeError, ValueError):
        return {}
