"""Group mode: the members of a consumer group share the partitions, and each partition has its own model."""

from __future__ import annotations

import copy
import glob
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamkernel.daemon.components.declaration import OWN_CHECKPOINT, Component
from streamkernel.daemon.config import kafka
from streamkernel.daemon.config.document import Document
from streamkernel.daemon.config.problems import ConfigError, Problem
from streamkernel.daemon.config.schema import Config, KafkaSourceConfig

__all__ = [
    "GROUP_MODE",
    "GROUP_OPTIONS",
    "PLACEHOLDER",
    "group_of",
    "of_partitions",
    "partition_directories",
    "partition_document",
]

PLACEHOLDER = "{partition}"
"""The number of the partition, in a name of the configuration."""

# The names that no two partitions may share.
_OWN_NAMES = tuple(
    (section, key) for key in ("path", "transactional_id") for section in ("predictions", "dead_letters")
)
_PARTITION = re.compile(r"partition-(\d+)")


def group_of(config: Config) -> str | None:
    """Return the name of the consumer group, None outside group mode."""
    return config.source.group if isinstance(config.source, KafkaSourceConfig) else None


def _problems(config: Config) -> Iterator[Problem]:
    source = config.source
    assert isinstance(source, KafkaSourceConfig)
    if source.partitions != "all":
        yield Problem("source.partitions", "must be all with source.group, which assigns the partitions")
    if "group_id" in source.options.given():
        why = "not with source.group, to which the offsets are committed anyway"
        yield Problem("source.options.group_id", why)
    for section, key in _OWN_NAMES:
        name = getattr(config.outputs[section], key, None)
        if name is not None and PLACEHOLDER not in name:
            why = f"must contain {PLACEHOLDER} with source.group, each partition needs its own"
            yield Problem(f"{section}.{key}", why)


def _options_given(config: Config) -> list[str]:
    return [
        f"{key}.options.{name}"
        for key, source in config.sources.items()
        if isinstance(source, KafkaSourceConfig)
        for name in kafka.GROUP_OPTIONS
        if name in source.options.given()
    ]


GROUP_MODE = Component(
    "group_mode",
    lambda config: ["source.group"] if group_of(config) is not None else [],
    needs={"checkpoint": f"{OWN_CHECKPOINT}: members hand a partition's model over through it"},
    problems=_problems,
)
GROUP_OPTIONS = Component("group_options", _options_given, needs={"group_mode": "works only with source.group"})


def of_partitions(path: str) -> list[str]:
    """Return the existing paths that a path with the placeholder means; one without means itself."""
    return sorted(glob.glob("*".join(map(glob.escape, path.split(PLACEHOLDER))))) if PLACEHOLDER in path else [path]


def partition_directories(directory: Path) -> dict[int, Path]:
    """Find the existing directories of partitions, by partition."""
    found = ((_PARTITION.fullmatch(path.name), path) for path in directory.glob("partition-*"))
    return dict(sorted((int(match[1]), path) for match, path in found if match is not None and path.is_dir()))


def partition_document(document: Document, partition: int) -> Document:
    """Return the configuration of one partition's daemon, from the configuration of a member.

    Raises
    ------
    ConfigError
        If the configuration names no group.

    """
    if not (isinstance(document.values.get("source"), dict) and document.values["source"].get("group")):
        raise ConfigError(Problem("source.group", "required for the daemon of one partition"))
    return replace(document, raw=_of_one(document.raw, partition), values=_of_one(document.values, partition))


def _of_one(tree: dict[str, Any], partition: int) -> dict[str, Any]:
    tree = copy.deepcopy(tree)
    source = tree["source"]
    del source["group"]
    source["partitions"] = [partition]
    for name in kafka.GROUP_OPTIONS:
        (source.get("options") or {}).pop(name, None)
    tree["checkpoint"]["directory"] = str(Path(tree["checkpoint"]["directory"]) / f"partition-{partition}")
    if tree.get("serve_from"):
        tree["serve_from"] = str(tree["serve_from"]).replace(PLACEHOLDER, str(partition))
    for section, key in (*_OWN_NAMES, ("initial_model", "checkpoint")):
        if key in (tree.get(section) or {}):
            tree[section][key] = str(tree[section][key]).replace(PLACEHOLDER, str(partition))
    metrics = tree.get("metrics", {})
    if metrics is not None:
        # Only the member reads them, on this machine; it serves them to others.
        tree["metrics"] = {**metrics, "host": "127.0.0.1", "port": 0, "tls": None}
    return tree
