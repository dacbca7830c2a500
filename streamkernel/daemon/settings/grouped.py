"""Group mode in a configuration: what it rules out, and what becomes of it for one partition."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from streamkernel.daemon.settings.config import Config, KafkaSource
from streamkernel.daemon.settings.document import Document
from streamkernel.daemon.settings.kafka import GROUP_OPTIONS
from streamkernel.daemon.settings.problems import ConfigError

__all__ = ["PLACE", "group_of", "problems", "refuse", "share", "shares"]

PLACE = "{partition}"
"""What stands for the number of the partition in a name of the configuration."""

_SHARE = re.compile(r"partition-(\d+)")
# Where the names stand that no two partitions may share.
_OWN = (("predictions", "path"), ("dead_letters", "path"))
_OWN_IN_KAFKA = (("predictions", "transactional_id"), ("dead_letters", "transactional_id"))


def group_of(config: Config) -> str | None:
    """Give the name of the consumer group, None outside group mode."""
    return config.source.group if isinstance(config.source, KafkaSource) else None


def problems(config: Config) -> list[str]:
    """Find what cannot be together with a group, and what makes no sense without one."""
    lines = []
    if config.labels is not None and isinstance(config.labels.source, KafkaSource):
        if config.labels.source.group is not None:
            lines.append("labels.source.group: not for labels, which are read by whoever reads their records")
        lines += _without_group("labels.source", config.labels.source)
    source = config.source
    if not isinstance(source, KafkaSource):
        return lines
    if source.group is None:
        return lines + _without_group("source", source)
    if config.checkpoint is None:
        lines.append("checkpoint: required with source.group, a partition's model changes hands through it")
    if source.partitions != "all":
        lines.append("source.partitions: must be all with source.group, which shares them out")
    if source.order != "arrival":
        lines.append("source.order: not with source.group, where each model reads one partition, which is in order")
    if "group_id" in source.options.given():
        lines.append("source.options.group_id: not with source.group, to which the offsets are committed anyway")
    if config.labels is not None:
        lines.append("labels: not with source.group, a label could come to another partition than its record")
    for section, key in (*_OWN, *_OWN_IN_KAFKA):
        name = getattr(getattr(config, section), key, None)
        if name is not None and PLACE not in name:
            lines.append(f"{section}.{key}: must contain {PLACE} with source.group, each partition needs its own")
    return lines


def _without_group(key: str, source: KafkaSource) -> list[str]:
    return [
        f"{key}.options.{name}: has a meaning only with source.group"
        for name in GROUP_OPTIONS
        if name in source.options.given()
    ]


def refuse(what: str, why: str) -> NoReturn:
    """Refuse something of the command line in group mode.

    Raises
    ------
    ConfigError
        Saying why, or what to do instead.

    """
    raise ConfigError([f"{what}: not with source.group: {why}"])


def shares(directory: Path) -> dict[int, Path]:
    """Find the directories of the partitions that were begun, by partition."""
    found = ((_SHARE.fullmatch(path.name), path) for path in directory.glob("partition-*"))
    return dict(sorted((int(match[1]), path) for match, path in found if match is not None))


def share(document: Document, partition: int) -> Document:
    """Make the configuration of the daemon of one partition.

    Parameters
    ----------
    document
        The configuration of a member of a group, valid.
    partition
        The partition.

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
    for section, key in (*_OWN, *_OWN_IN_KAFKA):
        if key in (tree.get(section) or {}):
            tree[section][key] = str(tree[section][key]).replace(PLACE, str(partition))
    metrics = tree.get("metrics", {})
    if metrics is not None:
        # For the member alone, on this machine: it is the member that serves them to others.
        tree["metrics"] = {**metrics, "host": "127.0.0.1", "port": 0, "tls": None}
    return tree
