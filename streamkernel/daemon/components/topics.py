"""Topics of Kafka: the logged order of a source, the transactions of an output, and schema registries."""

from __future__ import annotations

from collections.abc import Iterator

from streamkernel.connectors.kafka.base.options import TRANSACTION_TIMEOUT_MS
from streamkernel.daemon.components.declaration import OWN_CHECKPOINT, Component
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.registry import registry_problems
from streamkernel.daemon.config.schema import Config, KafkaSinkConfig, KafkaSourceConfig

__all__ = ["CHECKPOINT", "LOGGED_ORDER", "MESSAGES", "TOPICS", "TRANSACTIONS"]


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


def _of_transactions(config: Config) -> Iterator[Problem]:
    for key, output in _with_transactions(config).items():
        timeout = output.options.transaction_timeout_ms or TRANSACTION_TIMEOUT_MS
        if config.checkpoint is not None and timeout < 2000 * config.checkpoint.every_seconds:
            seconds = f"{config.checkpoint.every_seconds:g} s"
            why = f"must be at least twice checkpoint.every_seconds ({seconds}), is {timeout}"
            yield Problem(f"{key}.options.transaction_timeout_ms", why)


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
    problems=_of_transactions,
)
