"""Conflicts between a configuration and the task of its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamkernel.daemon.base.model import Model, Task, last_step, task_of
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.components.columns import has_typed_lines
from streamkernel.daemon.config.outputs import ClassColumnsConfig
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config, RiverSourceConfig
from streamkernel.daemon.config.sources import is_list
from streamkernel.daemon.stream.quality import REPORTS

__all__ = ["model_conflicts"]

_WITHOUT_CLASSES = {"regression": "a regressor", "novelty": "a novelty detector", "density_ratio": "a density ratio"}
_WITH_SEVERAL_TARGETS = {"several_numbers": "a multi-target regressor", "several_labels": "a multi-label classifier"}
_OF_TYPE: dict[type, str] = {bool: "bool", int: "int", str: "str"}


def model_conflicts(config: Config, models: Mapping[str, Model], published: Model) -> Iterator[Problem]:
    """Yield a problem for each setting that does not fit the models."""
    task = task_of(published)
    yield from _of_several_targets(config, published, task)
    yield from _of_target_types(config, published, task)
    if task == "novelty" and config.labels is not None:
        why = "not for a novelty detector, which learns each record without a label: leave it out"
        yield Problem("labels", why)
    output = config.predictions
    if task in _WITHOUT_CLASSES and isinstance(output, ClassColumnsConfig) and output.classes:
        yield Problem("predictions.classes", f"not for {_WITHOUT_CLASSES[task]}, which has no classes")
    fitting = f"use {', '.join(REPORTS[task])}" if REPORTS[task] else "for which there are none"
    for index, metric in enumerate((config.metrics and config.metrics.report) or ()):
        if metric not in REPORTS[task]:
            yield Problem(f"metrics.report[{index}]", f"{metric} does not fit a model for {task}, {fitting}")
    for name, model in models.items():
        if (other := task_of(model)) != task:
            why = f"is for {other}, and the published one for {task}: all learn the same target"
            yield Problem(f"models.{name}", why)
    if config.warm_start is not None and config.warm_start.refit and not any(map(window_refit_of, models.values())):
        yield Problem("warm_start.refit", "no model is a streamkernel.WindowRefit: leave it out")


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
        is_score = task in ("novelty", "density_ratio") and source.target is not None
        if is_score and kind != "float" and has_typed_lines(config):
            why = f"a score is a number, {section}.target is a {kind}, and this output needs one type for both"
            yield Problem("predictions", f"{why}: use jsonl, csv or json")
