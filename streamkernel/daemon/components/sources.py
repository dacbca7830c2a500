"""The files, the inputs and the targets of sources, and how these fit the models."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.base.model import Model, Task, last_step, task_of
from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.components.late_labels import join_key
from streamkernel.daemon.config.inputs import input_problems
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config, RiverSourceConfig
from streamkernel.daemon.config.sources import is_list, is_several, paths_of

__all__ = ["SEVERAL_TARGETS", "SOURCES", "own_target"]

_WITH_SEVERAL_TARGETS = {"several_numbers": "a multi-target regressor", "several_labels": "a multi-label classifier"}
_OF_TYPE: dict[type, str] = {bool: "bool", int: "int", str: "str"}


def own_target(config: Config, section: str) -> Any:
    """Return the targets that the records of a source must bring; None where labels come late or nothing is learned."""
    unlabeled = section == "source" and (config.labels is not None or config.mode == "predict")
    return None if unlabeled else getattr(config.sources[section], "target", None)


def _problems(config: Config) -> Iterator[Problem]:
    for key, source in config.sources.items():
        yield from _of_files(key, source)
        if (columns := getattr(source, "inputs", None)) is not None:
            joined_by = None if key == "warm_start.source" else join_key(config)
            yield from input_problems(f"{key}.inputs", columns, names_of(getattr(source, "target", None)), joined_by)


def _of_files(key: str, section: Any) -> Iterator[Problem]:
    folder = next(filter(os.path.isdir, paths_of(section)), None)
    if folder is not None and not section.watch:
        pattern = os.path.join(folder, f"*.{section.kind}")
        why = f"{folder} is a directory: give a pattern such as {pattern} to read its files, or set watch: true to wait"
        yield Problem(f"{key}.path", f"{why} for more as well")
    elif is_several(section):
        if getattr(section, "follow", False):
            why = "not with several files: watch: true waits for new files, follow for more of a single one"
            yield Problem(f"{key}.follow", why)
        if section.watch and isinstance(section.path, list):
            why = "one directory or pattern can be watched, not a list: give a pattern that has them all"
            yield Problem(f"{key}.watch", why)


def _of_models(config: Config, models: Mapping[str, Model], published: str) -> Iterator[Problem]:
    model = models[published]
    yield from _of_several_targets(config, model, task_of(model))
    yield from _of_target_types(config, model, task_of(model))


def _of_several_targets(config: Config, model: Model, task: Task) -> Iterator[Problem]:
    of = _WITH_SEVERAL_TARGETS.get(task)
    if of is not None and model is not last_step(model):
        why = f"{of} must be the whole model: remove the steps before it, or take a model of one target"
        yield Problem("model", why)
    for key, source in config.sources.items():
        if of is None and is_list(source):
            ours = "use streamkernel.KernelMultiTargetRegressor or KernelMultiLabelClassifier for several"
            why = f"must be one column, a model for {task.replace('_', ' ')} learns one target: {ours}"
            yield Problem(f"{key}.target", why)
        if of is None or is_list(source) or key == "labels.source":
            continue
        if isinstance(source, RiverSourceConfig):
            why = f"a data set has one target here, and {of} learns several: use csv, jsonl or kafka"
            yield Problem(f"{key}.kind", why)
        elif config.mode == "learn" or source.target is not None:
            yield Problem(f"{key}.target", f"must be a list of columns for {of}, such as [a, b]")


def _of_target_types(config: Config, model: Model, task: Task) -> Iterator[Problem]:
    for section, source in config.sources.items():
        # Records that bring no target of their own need no type for it.
        if isinstance(source, RiverSourceConfig) or (config.labels is not None and source.target is None):
            continue
        key, kind = f"{section}.target_type", source.target_type
        if task in ("regression", "several_numbers") and kind != "float":
            yield Problem(key, f"must be float for a regressor, is {kind}")
        if task == "several_labels" and kind != "bool":
            yield Problem(key, f"must be bool for labels that are true or false, is {kind}")
        if task == "classification" and kind == "float":
            yield Problem(key, "must be str, int or bool for a classifier, is float")
        if task == "density_ratio" and source.target is not None:
            p, q = last_step(model).p, last_step(model).q  # type: ignore[attr-defined]
            kinds = [_OF_TYPE.get(type(label), "str") for label in (p, q)]
            if kinds[0] != kinds[1]:
                samples = f"the samples {p!r} ({kinds[0]}) and {q!r} ({kinds[1]})"
                unquoted = "(in YAML, yes and no without quotes are booleans)"
                yield Problem("model", f"{samples} must both have the type of {key}, {kind} {unquoted}")
            elif kinds[0] != kind:
                yield Problem(key, f"must be {kinds[0]} for the samples {p!r} and {q!r}, is {kind}")


SEVERAL_TARGETS = Component("several_targets", lambda config: ["source.target"] if is_list(config.source) else [])
SOURCES = Component("sources", lambda config: list(config.sources), problems=_problems, model_problems=_of_models)
