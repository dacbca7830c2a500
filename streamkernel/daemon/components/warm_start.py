"""A warm start: the model learns a finite source before the first record of the main source."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from typing import Any

from streamkernel.connectors.files.names import is_pattern, matching
from streamkernel.connectors.ports import Source
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config, JournalSourceConfig, KafkaSourceConfig, RiverSourceConfig
from streamkernel.daemon.config.sources import is_list, paths_of

__all__ = ["WARM_START", "learned_twice", "problems_of_warm_source", "refits"]

_OTHERWISE = "learn it in its own run, and name that run's checkpoint.directory in initial_model"


def _problems(config: Config) -> Iterator[Problem]:
    assert config.warm_start is not None
    source = config.warm_start.source
    if isinstance(source, KafkaSourceConfig):
        yield Problem("warm_start.source.kind", f"must be a source that ends, and a topic does not: {_OTHERWISE}")
        return
    for key in ("follow", "watch"):
        if getattr(source, key, False):
            yield Problem(f"warm_start.source.{key}", f"must be a source that ends: drop {key}, or {_OTHERWISE}")
    if isinstance(source, RiverSourceConfig):
        return
    if source.target is None:
        yield Problem("warm_start.source.target", "required, it names the column or key of the label")
    elif is_list(config.source) and source.target != config.source.target:  # type: ignore[union-attr]
        yield Problem("warm_start.source.target", "must name the same targets as source.target, in the same order")


def refits(config: Config, models: Mapping[str, Model]) -> bool:
    """Return whether a model is refitted after the last record of a warm start."""
    warm = config.warm_start
    return warm is not None and warm.refit is not False and any(map(window_refit_of, models.values()))


def _of_models(config: Config, models: Mapping[str, Model], published: str) -> Iterator[Problem]:  # noqa: ARG001
    if config.warm_start is not None and config.warm_start.refit and not refits(config, models):
        yield Problem("warm_start.refit", "no model is a streamkernel.WindowRefit: leave it out")


WARM_START = Component(
    "warm_start",
    lambda config: [] if config.warm_start is None else ["warm_start"],
    excludes={
        "predict_mode": "not in mode predict, which learns nothing: name a trained model in serve_from",
        "group_mode": f"not with source.group, where each partition has its own model: {_OTHERWISE}",
    },
    problems=_problems,
    model_problems=_of_models,
)


def learned_twice(config: Config) -> str | None:
    """Return a sentence if a warm start and the source read the same records."""
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
    """Return the existing files, the data set or the folder that a source reads."""
    if isinstance(source, RiverSourceConfig):
        return {f"the data set {source.dataset}" + (f" with {source.args}" if source.args else "")}
    if isinstance(source, JournalSourceConfig):
        return {os.path.realpath(source.directory)}
    files: list[str] = []
    for path in paths_of(source):
        pattern = os.path.join(glob.escape(path), "*") if os.path.isdir(path) else path
        files += matching(pattern) if is_pattern(pattern) else [path]
    return {os.path.realpath(file) for file in files if file != "-"}


def problems_of_warm_source(config: Config, sources: Mapping[str, Source]) -> Iterator[Problem]:
    """Yield why the model cannot learn the source of a warm start first, given the unopened sources by section."""
    if (source := sources.get("warm_start.source")) is None:
        return
    kind = config.sources["warm_start.source"].kind
    if kind == "river" and source.total is None:
        why = f"must be a source that ends, {source.describe()} does not: {_OTHERWISE}"
        yield Problem("warm_start.source", why)
    elif not source.resumable:
        what = "give it a seed" if kind == "river" else "write it to a file"
        yield Problem("warm_start.source", f"{source.describe()} cannot be read again after a restart: {what}")
