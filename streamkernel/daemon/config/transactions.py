"""Names the transactions of outputs to Kafka where the configuration leaves that to the daemon."""

from __future__ import annotations

import hashlib
from pathlib import Path

from streamkernel.daemon.config.grouped import PLACEHOLDER, group_of
from streamkernel.daemon.config.kafka import AUTO
from streamkernel.daemon.config.schema import Config, KafkaSinkConfig

__all__ = ["with_transactional_ids"]


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
