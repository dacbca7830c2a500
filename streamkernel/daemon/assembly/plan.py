"""A configuration file, read, checked and built: everything a command needs before it touches the world."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamkernel.connectors.ports import Source, SourceError
from streamkernel.daemon.assembly.columns import let_pass
from streamkernel.daemon.assembly.connectors import make_sink, make_source
from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.assembly.tasks import problems_of_refit, problems_of_task
from streamkernel.daemon.base.model import Model, Task, task_of
from streamkernel.daemon.config.document import Document, read
from streamkernel.daemon.config.files import problems as file_problems
from streamkernel.daemon.config.overrides import Override
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.config.schema import Config
from streamkernel.daemon.config.validate import validate
from streamkernel.daemon.config.warm import problems_of_warm_source
from streamkernel.daemon.stream.quality import REPORTS

__all__ = ["plan_of", "prepare"]


def prepare(path: Path, environment: Mapping[str, str] = os.environ, overrides: Sequence[Override] = ()) -> Plan:
    """Return what the configuration at a path asks for, with overrides; nothing is opened, written or started.

    Variables are looked up in the environment.

    Raises
    ------
    ConfigError
        With every mistake there is, one line each.

    """
    return plan_of(path, read(path, environment, overrides))


def plan_of(path: Path, document: Document) -> Plan:
    """Return what a document that was read from a path asks for; see `prepare`."""
    config, problems = validate(document)
    if config is not None:
        problems += file_problems(config, path)
    models, model_problems = _models(document, problems)
    problems = _first_for_each_key([*document.problems, *problems, *model_problems])
    if config is not None:
        sources, connector_problems = _connectors(config)
        problems = _first_for_each_key([*problems, *connector_problems])
    if models and config is not None:
        model = models[config.publish if config.publish in models else next(iter(models))]
        task = task_of(model)
        problems += [*problems_of_task(config, model), *_other_tasks(models, task), *problems_of_refit(config, models)]
        if not problems:
            report = config.metrics.report if config.metrics is not None else None
            return Plan(
                path=path,
                config=config,
                raw=document.raw,
                source=sources["source"],
                model=model,
                task=task,
                report=tuple(report or REPORTS[task]),
                redact=document.redact,
                labels=sources.get("labels.source"),
                warm=sources.get("warm_start.source"),
                models={} if config.models is None else models,
            )
    raise ConfigError([document.redact(document.as_written(line)) for line in problems])


def _connectors(config: Config) -> tuple[dict[str, Source], list[str]]:
    """Make the sources, unopened, by the key of their section, and try what the sinks are made of."""
    sources, problems = {}, []
    for key, source in config.sources.items():
        try:
            sources[key] = make_source(source, config.limits, key, config.checkpoint, config.mode)
            if key == "source":
                let_pass(sources[key], config)
        except ConfigError as error:
            problems += error.lines
        except SourceError as error:
            problems.append(f"predictions.include: {error}")
    if "warm_start.source" in sources:
        kind = config.sources["warm_start.source"].kind
        problems += problems_of_warm_source(sources["warm_start.source"], kind)
    for key, sink in config.outputs.items():
        try:
            make_sink(sink, key)
        except ConfigError as error:
            problems += error.lines
    return sources, problems


def _models(document: Document, problems: list[str]) -> tuple[dict[str, Model], list[str]]:
    """Build the models by their names even where other sections are wrong, so that all mistakes are told at once.

    One that is under ``model`` has an empty name; there are none where one is wrong.
    """
    values = document.values
    if any(line.startswith(("model:", "models", "imports")) for line in [*problems, *document.problems]):
        return {}, []
    named = values.get("models")
    written: dict[str, tuple[tuple[str, ...], Any]] = {"": (("model",), values.get("model"))}
    if named is not None:
        written = {name: (("models", name), steps) for name, steps in named.items()}
    built: dict[str, Model] = {}
    wrong: list[str] = []
    for name, (path, steps) in written.items():
        try:
            built[name] = build_model(steps, values.get("imports") or [], path)
        except ConfigError as error:
            wrong += error.lines
    return ({}, wrong) if wrong else (built, [])


def _first_for_each_key(lines: list[str]) -> list[str]:
    """Drop what only follows from another mistake, as a missing variable: its key has a line already."""
    kept: dict[str, str] = {}
    for line in lines:
        kept.setdefault(line.partition(": ")[0], line)
    return list(kept.values())


def _other_tasks(models: Mapping[str, Model], task: Task) -> list[str]:
    return [
        f"models.{name}: is for {task_of(model)}, and the published one for {task}: all learn the same target"
        for name, model in models.items()
        if task_of(model) != task
    ]
