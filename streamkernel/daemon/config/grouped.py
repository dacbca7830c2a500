"""Group mode in a configuration, and the configuration of one partition that is made of it."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamkernel.daemon.config.document import Document
from streamkernel.daemon.config.kafka import GROUP_OPTIONS
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.config.schema import Config, KafkaSourceConfig

__all__ = ["OWN_NAMES", "PLACEHOLDER", "group_of", "partition_directories", "partition_document"]

PLACEHOLDER = "{partition}"
"""What stands for the number of the partition in a name of the configuration."""

OWN_NAMES = tuple((section, key) for key in ("path", "transactional_id") for section in ("predictions", "dead_letters"))
"""Where the names stand that no two partitions may share."""

_SHARE = re.compile(r"partition-(\d+)")


def group_of(config: Config) -> str | None:
    """Return the name of the consumer group, None outside group mode."""
    return config.source.group if isinstance(config.source, KafkaSourceConfig) else None


def partition_directories(directory: Path) -> dict[int, Path]:
    """Find the directories of the partitions that were begun, by partition."""
    found = ((_SHARE.fullmatch(path.name), path) for path in directory.glob("partition-*"))
    return dict(sorted((int(match[1]), path) for match, path in found if match is not None and path.is_dir()))


def partition_document(document: Document, partition: int) -> Document:
    """Return the configuration of the daemon of one partition, made of that of a member of a group.

    Raises
    ------
    ConfigError
        Where there is no group in it.

    """
    if not (isinstance(document.values.get("source"), dict) and document.values["source"].get("group")):
        raise ConfigError(["source.group: required for the daemon of one partition"])
    return replace(document, raw=_shared(document.raw, partition), values=_shared(document.values, partition))


def _shared(tree: dict[str, Any], partition: int) -> dict[str, Any]:
    tree = copy.deepcopy(tree)
    source = tree["source"]
    del source["group"]
    source["partitions"] = [partition]
    for name in GROUP_OPTIONS:
        (source.get("options") or {}).pop(name, None)
    tree["checkpoint"]["directory"] = str(Path(tree["checkpoint"]["directory"]) / f"partition-{partition}")
    if tree.get("serve_from"):
        tree["serve_from"] = str(tree["serve_from"]).replace(PLACEHOLDER, str(partition))
    for section, key in (*OWN_NAMES, ("initial_model", "checkpoint")):
        if key in (tree.get(section) or {}):
            tree[section][key] = str(tree[section][key]).replace(PLACEHOLDER, str(partition))
    metrics = tree.get("metrics", {})
    if metrics is not None:
        # For the member alone, on this machine: it is the member that serves them to others.
        tree["metrics"] = {**metrics, "host": "127.0.0.1", "port": 0, "tls": None}
    return tree
