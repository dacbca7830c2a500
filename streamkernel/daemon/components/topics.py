"""Topics of Kafka: the logged order of a source, the transactions of an output, and schema registries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from streamkernel.daemon.components.declaration import OWN_CHECKPOINT, Component
from streamkernel.daemon.components.group_mode import PLACEHOLDER, group_of
from streamkernel.daemon.config.kafka import AUTO
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.registry import registry_problems
from streamkernel.daemon.config.schema import Config, KafkaSinkConfig, KafkaSourceConfig

__all__ = ["CHECKPOINT", "LOGGED_ORDER", "MESSAGES", "TOPICS", "TRANSACTIONS", "with_transactional_ids"]


def _topics(config: Config) -> dict[str, KafkaSourceConfig | KafkaSinkConfig]:
    sections = {**config.sources, **config.outputs}.items()
    return {key: one for key, one in sections if isinstance(one, KafkaSourceConfig | KafkaSinkConfig)}


def _with_transactions(config: Config) -> dict[str, KafkaSinkConfig]:
    topics = _topics(config).items()
    return {key: one for key, one in topics if isinstance(one, KafkaSinkConfig) and one.transactional_id is not None}


def _problems(config: Config) -> Iterator[Problem]:
    topics = _topics(config)
    for place, (key, section) in enumerate(topics.items()):
        yield from registry_problems(key, section.value_format, section.schema_registry)
        for other, before in [*topics.items()][:place]:
            if isinstance(section, KafkaSourceConfig) or _apart(section, before):
                continue
            if section.topic == before.topic:
                yield Problem(f"{key}.topic", f"must differ from {other}.topic")
            if section.transactional_id and section.transactional_id == getattr(before, "transactional_id", None):
                yield Problem(f"{key}.transactional_id", f"must differ from {other}.transactional_id")


def _apart(one: KafkaSinkConfig, other: KafkaSourceConfig | KafkaSinkConfig) -> bool:
    return set(one.bootstrap_servers).isdisjoint(other.bootstrap_servers)


def with_transactional_ids(config: Config) -> Config:
    """Return a configuration with the transactional ID of each output; None where nothing is saved.

    The ID stays the same as long as the checkpoint directory and the topic do.
    """
    named = {
        key: output.model_copy(update={"transactional_id": _name(config, key, output.topic)})
        for key, output in config.outputs.items()
        if isinstance(output, KafkaSinkConfig) and output.transactional_id == AUTO
    }
    return config.model_copy(update=named) if named else config


def _name(config: Config, key: str, topic: str) -> str | None:
    if config.checkpoint is None:
        return None
    place = f"{Path(config.checkpoint.directory).absolute()}:{key}"
    name = f"streamkernel-{topic}-{hashlib.sha256(place.encode()).hexdigest()[:12]}"
    return name if group_of(config) is None else f"{name}-{PLACEHOLDER}"


CHECKPOINT = Component("checkpoint", lambda config: [] if config.checkpoint is None else ["checkpoint"])
MESSAGES = Component("messages", lambda config: ["source"] if isinstance(config.source, KafkaSourceConfig) else [])
LOGGED_ORDER = Component(
    "logged_order",
    lambda config: [f"{key}.order" for key, one in config.sources.items() if getattr(one, "order", "") == "logged"],
    needs={"checkpoint": f"logged {OWN_CHECKPOINT}: the order is stored there"},
    excludes={"group_mode": "not with source.group, where each model reads one partition, which is in order"},
)
TOPICS = Component("topics", lambda config: list(_topics(config)), problems=_problems)
TRANSACTIONS = Component(
    "transactions",
    lambda config: [f"{key}.transactional_id" for key in _with_transactions(config)],
    needs={"checkpoint": f"{OWN_CHECKPOINT}: each checkpoint commits a transaction"},
)
