"""A warm start in a configuration: what its source must be."""

from __future__ import annotations

from collections.abc import Iterator

from connectors.ports import Source
from streamkernel.daemon.config.schema import Config, KafkaSourceConfig, RiverSourceConfig

__all__ = ["conflicts_of_warm_start", "problems_of_warm_source"]

_OTHERWISE = "learn it in a run of its own, and name its checkpoint.directory in initial_model"


def conflicts_of_warm_start(config: Config) -> Iterator[str]:
    """Yield a line for each setting that a warm start rules out."""
    if config.warm_start is None:
        return
    source = config.warm_start.source
    if config.mode == "predict":
        yield "warm_start: not in mode predict, which learns nothing: name a trained model in serve_from"
    if getattr(config.source, "group", None) is not None:
        yield f"warm_start: not with source.group, where each partition has a model of its own: {_OTHERWISE}"
    if isinstance(source, KafkaSourceConfig):
        yield f"warm_start.source.kind: must be a source that ends, which a topic does not: {_OTHERWISE}"
        return
    for key in ("follow", "watch"):
        if getattr(source, key, False):
            yield f"warm_start.source.{key}: must be a source that ends: drop {key}, or {_OTHERWISE}"
    if not isinstance(source, RiverSourceConfig) and source.target is None:
        yield "warm_start.source.target: required, it names the column or key of the label"


def problems_of_warm_source(source: Source, kind: str) -> Iterator[str]:
    """Yield why a source of a kind, unopened, cannot be learnt first."""
    if kind == "river" and source.total is None:
        yield f"warm_start.source: must be a source that ends, {source.describe()} does not: {_OTHERWISE}"
    elif not source.resumable:
        what = "give it a seed" if kind == "river" else "write it to a file"
        yield f"warm_start.source: {source.describe()} cannot be read again after a restart: {what}"
