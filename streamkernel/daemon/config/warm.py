"""A warm start in a configuration: what its source must be."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from typing import Any

from streamkernel.connectors.files.names import is_pattern, matching
from streamkernel.connectors.ports import Source
from streamkernel.daemon.config.schema import Config, JournalSourceConfig, KafkaSourceConfig, RiverSourceConfig
from streamkernel.daemon.config.several import paths_of

__all__ = ["conflicts_of_warm_start", "learned_twice", "problems_of_warm_source"]

_OTHERWISE = "learn it in its own run, and name that run's checkpoint.directory in initial_model"


def conflicts_of_warm_start(config: Config) -> Iterator[str]:
    """Yield a line for each setting that a warm start rules out."""
    if config.warm_start is None:
        return
    source = config.warm_start.source
    if config.mode == "predict":
        yield "warm_start: not in mode predict, which learns nothing: name a trained model in serve_from"
    if getattr(config.source, "group", None) is not None:
        yield f"warm_start: not with source.group, where each partition has its own model: {_OTHERWISE}"
    if isinstance(source, KafkaSourceConfig):
        yield f"warm_start.source.kind: must be a source that ends, and a topic does not: {_OTHERWISE}"
        return
    for key in ("follow", "watch"):
        if getattr(source, key, False):
            yield f"warm_start.source.{key}: must be a source that ends: drop {key}, or {_OTHERWISE}"
    if not isinstance(source, RiverSourceConfig) and source.target is None:
        yield "warm_start.source.target: required, it names the column or key of the label"


def learned_twice(config: Config) -> str | None:
    """Return a sentence where a warm start and the source read the same records; None where they do not."""
    if config.warm_start is None:
        return None
    both = sorted(_places(config.source) & _places(config.warm_start.source))
    if not both:
        return None
    more = f" and {len(both) - 1:,} more" if len(both) > 1 else ""
    return (
        f"warm_start.source and source both read {both[0]}{more}: its records are learned twice. To avoid that, "
        "name only new files in source, or remove warm_start"
    )


def _places(source: Any) -> set[str]:
    """Return the files, the data set or the folder that a source reads, as far as they are there by now."""
    if isinstance(source, RiverSourceConfig):
        return {f"the data set {source.dataset}" + (f" with {source.args}" if source.args else "")}
    if isinstance(source, JournalSourceConfig):
        return {os.path.realpath(source.directory)}
    files: list[str] = []
    for path in paths_of(source):
        pattern = os.path.join(glob.escape(path), "*") if os.path.isdir(path) else path
        files += matching(pattern) if is_pattern(pattern) else [path]
    return {os.path.realpath(file) for file in files if file != "-"}


def problems_of_warm_source(source: Source, kind: str) -> Iterator[str]:
    """Yield why a source of a kind, unopened, cannot be learned first."""
    if kind == "river" and source.total is None:
        yield f"warm_start.source: must be a source that ends, {source.describe()} does not: {_OTHERWISE}"
    elif not source.resumable:
        what = "give it a seed" if kind == "river" else "write it to a file"
        yield f"warm_start.source: {source.describe()} cannot be read again after a restart: {what}"
