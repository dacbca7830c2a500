"""Outputs that are topics: what cannot go together with the rest of a configuration."""

from __future__ import annotations

from connectors.kafka.base.options import TRANSACTION_TIMEOUT_MS
from streamkernel.daemon.settings.config import CheckpointConfig, Config, KafkaSink, KafkaSource

__all__ = ["problems"]


def problems(config: Config) -> list[str]:
    """Find outputs to a topic that another section uses, and transactions that would not end in time.

    Parameters
    ----------
    config
        Valid in each of its sections.

    Returns
    -------
    lines
        One for each mistake.

    """
    lines: list[str] = []
    sources = {"source": config.source, "labels.source": config.labels and config.labels.source}
    used: dict[str, KafkaSource | KafkaSink] = {
        key: section for key, section in sources.items() if isinstance(section, KafkaSource)
    }
    outputs = {"predictions": config.predictions, "dead_letters": config.dead_letters}
    for key, output in outputs.items():
        if not isinstance(output, KafkaSink):
            continue
        for other, section in used.items():
            if set(section.bootstrap_servers).isdisjoint(output.bootstrap_servers):
                continue
            if section.topic == output.topic:
                lines.append(f"{key}.topic: must differ from {other}.topic")
            if output.transactional_id and getattr(section, "transactional_id", None) == output.transactional_id:
                lines.append(f"{key}.transactional_id: must differ from {other}.transactional_id")
        lines += _transaction_problems(key, output, config.checkpoint)
        used[key] = output
    return lines


def _transaction_problems(key: str, output: KafkaSink, checkpoint: CheckpointConfig | None) -> list[str]:
    if output.transactional_id is None:
        return []
    if checkpoint is None:
        return [f"{key}.transactional_id: needs a checkpoint, with each of which a transaction is committed"]
    timeout = output.options.transaction_timeout_ms or TRANSACTION_TIMEOUT_MS
    if timeout < 2000 * checkpoint.every_seconds:
        return [
            f"{key}.options.transaction_timeout_ms: must be at least twice checkpoint.every_seconds "
            f"({checkpoint.every_seconds:g} s), is {timeout}"
        ]
    return []
