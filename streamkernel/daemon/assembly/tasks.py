"""What a configuration may not say beside a model for a certain task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamkernel.daemon.base.model import Model, Task, last_step, task_of
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.config.columns import ClassColumnsConfig
from streamkernel.daemon.config.schema import Config, RiverSourceConfig
from streamkernel.daemon.config.several_targets import is_list
from streamkernel.daemon.stream.quality import REPORTS

__all__ = ["problems_of_refit", "problems_of_task"]

_WITHOUT_CLASSES = {"regression": "a regressor", "novelty": "a novelty detector", "density_ratio": "a density ratio"}
_OF_TYPE: dict[type, str] = {bool: "bool", int: "int", str: "str"}


def problems_of_task(config: Config, model: Model) -> list[str]:
    """Return a line for each setting that does not fit the published model."""
    task = task_of(model)
    problems = [*_several_problems(config, model, task), *_target_problems(config, model, task)]
    if task == "novelty" and config.labels is not None:
        problems.append("labels: not for a novelty detector, which learns each record without a label: leave it out")
    output = config.predictions
    if task in _WITHOUT_CLASSES and isinstance(output, ClassColumnsConfig) and output.classes:
        problems.append(f"predictions.classes: not for {_WITHOUT_CLASSES[task]}, which has no classes")
    if config.metrics is not None:
        fitting = f"use {', '.join(REPORTS[task])}" if REPORTS[task] else "for which there are none"
        problems += [
            f"metrics.report[{index}]: {name} does not fit a model for {task}, {fitting}"
            for index, name in enumerate(config.metrics.report or [])
            if name not in REPORTS[task]
        ]
    return problems


def problems_of_refit(config: Config, models: Mapping[str, Model]) -> list[str]:
    """Return a line where a refit at the end of the warm start is asked for and there is no model to refit."""
    warm = config.warm_start
    if warm is None or not warm.refit or any(map(window_refit_of, models.values())):
        return []
    return ["warm_start.refit: no model is a streamkernel.WindowRefit: leave it out"]


def _several_problems(config: Config, model: Model, task: Task) -> Iterator[str]:
    """Yield what does not fit a model of several targets, and several targets that do not fit another model."""
    of = {"several_numbers": "a multi-target regressor", "several_labels": "a multi-label classifier"}.get(task)
    if of is not None and model is not last_step(model):
        yield f"model: {of} stands alone: remove the steps before it, or take a model of one target"
    for key, source in config.sources.items():
        if of is None and is_list(source):
            yield (
                f"{key}.target: must be one column, a model for {task.replace('_', ' ')} learns one target: use "
                "streamkernel.KernelMultiTargetRegressor or KernelMultiLabelClassifier for several"
            )
        if of is None or is_list(source) or key == "labels.source":
            continue
        if isinstance(source, RiverSourceConfig):
            yield f"{key}.kind: a data set has one target here, and {of} learns several: use csv, jsonl or kafka"
        elif config.mode == "learn" or source.target is not None:
            yield f"{key}.target: must be a list of columns for {of}, such as [a, b]"


def _target_problems(config: Config, model: Model, task: Task) -> Iterator[str]:
    for key, source in config.sources.items():
        # Records that bring no target of their own need no type for it.
        if isinstance(source, RiverSourceConfig) or (config.labels is not None and source.target is None):
            continue
        kind = source.target_type
        if task in ("regression", "several_numbers") and kind != "float":
            yield f"{key}.target_type: must be float for a regressor, is {kind}"
        if task == "several_labels" and kind != "bool":
            yield f"{key}.target_type: must be bool for labels that are true or false, is {kind}"
        if task == "classification" and kind == "float":
            yield f"{key}.target_type: must be str, int or bool for a classifier, is float"
        if task == "density_ratio" and source.target is not None:
            step = last_step(model)
            p, q = step.p, step.q  # type: ignore[attr-defined]
            kinds = [_OF_TYPE.get(type(label), "str") for label in (p, q)]
            if kinds[0] != kinds[1]:
                yield (
                    f"the samples {p!r} ({kinds[0]}) and {q!r} ({kinds[1]}) of the model: must both have the type of "
                    f"{key}.target_type, {kind} (in YAML, yes and no without quotes are booleans)"
                )
            elif kinds[0] != kind:
                yield f"{key}.target_type: must be {kinds[0]} for the samples {p!r} and {q!r}, is {kind}"
        scores = task in ("novelty", "density_ratio")
        if scores and source.target is not None and kind != "float" and _is_typed(config):
            yield (
                f"predictions: a score is a number, {key}.target is a {kind}, and this output needs one type for "
                "both: use jsonl, csv or json"
            )


def _is_typed(config: Config) -> bool:
    """Whether lines of predictions have a schema, in which targets have the type of predictions."""
    output = config.predictions
    return getattr(output, "kind", "") == "parquet" or getattr(output, "value_format", "json") != "json"
