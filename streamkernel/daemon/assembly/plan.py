"""Reads, checks and builds a configuration: all that a command needs before it opens anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamkernel.connectors.ports import Source, SourceError
from streamkernel.daemon.assembly.connectors import let_pass, make_sink, make_source
from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.base.model import Model, Task, task_of
from streamkernel.daemon.components.catalogue import feature_problems, model_problems
from streamkernel.daemon.components.predict_mode import with_mode_defaults
from streamkernel.daemon.components.several_models import published_of
from streamkernel.daemon.components.topics import with_transactional_ids
from streamkernel.daemon.components.warm_start import problems_of_warm_source
from streamkernel.daemon.config.document import Document, read
from streamkernel.daemon.config.files import file_problems
from streamkernel.daemon.config.overrides import Override
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError, Problem
from streamkernel.daemon.config.schema import Config, ReportName
from streamkernel.daemon.config.validate import validate
from streamkernel.daemon.stream.quality import REPORTS

__all__ = ["plan_of", "prepare"]


def prepare(path: Path, environment: Mapping[str, str] = os.environ, overrides: Sequence[Override] = ()) -> Plan:
    """Return what the configuration at a path asks for, with overrides; nothing is opened, written or started.

    Variables are looked up in the environment.

    Raises
    ------
    ConfigError
        With every mistake.

    """
    return plan_of(path, read(path, environment, overrides))


def plan_of(path: Path, document: Document) -> Plan:
    """Return what a document that was read from a path asks for; see `prepare`."""
    config, problems = validate(document)
    if config is not None:
        config = with_transactional_ids(with_mode_defaults(config))
        problems += [*feature_problems(config), *file_problems(config, path)]
    problems = [*document.problems, *problems]
    models, wrong = _models(document, problems)
    problems = _first_for_each_key([*problems, *wrong])
    if config is not None:
        sources, connector_problems = _connectors(config)
        problems = _first_for_each_key([*problems, *connector_problems])
    if models and config is not None:
        published = published_of(config)
        task = task_of(models[published])
        report = config.metrics.report if config.metrics is not None else None
        problems += [*model_problems(config, models, published), *_of_report(report or (), task)]
        if not problems:
            return Plan(
                path=path,
                config=config,
                raw=document.raw,
                sources=sources,
                models=models,
                published=published,
                task=task,
                report=tuple(report or REPORTS[task]),
                redact=document.redact,
            )
    raise ConfigError(*map(document.as_written, problems))


def _connectors(config: Config) -> tuple[dict[str, Source], list[Problem]]:
    """Make the sources, unopened, by the key of their section, and try to make the sinks."""
    sources: dict[str, Source] = {}
    problems: list[Problem] = []
    for key, source in config.sources.items():
        try:
            sources[key] = make_source(source, config, key, config.checkpoint)
            if key == "source":
                let_pass(sources[key], config)
        except ConfigError as error:
            problems += error.problems
        except SourceError as error:
            problems.append(Problem("predictions.include", str(error)))
    problems += problems_of_warm_source(config, sources)
    for key, sink in config.outputs.items():
        try:
            make_sink(sink, key)
        except ConfigError as error:
            problems += error.problems
    return sources, problems


def _models(document: Document, problems: Sequence[Problem]) -> tuple[dict[str, Model], list[Problem]]:
    """Build the models by their names, also if other sections are wrong, so that all mistakes come at once.

    The one under ``model`` has an empty name. There are none if one is wrong.
    """
    if any(one.path == "model" or one.within("models") or one.within("imports") for one in problems):
        return {}, []
    values = document.values
    named = values.get("models")
    written: dict[str, tuple[tuple[str, ...], Any]] = {"": (("model",), values.get("model"))}
    if named is not None:
        written = {name: (("models", name), steps) for name, steps in named.items()}
    built: dict[str, Model] = {}
    wrong: list[Problem] = []
    for name, (path, steps) in written.items():
        try:
            built[name] = build_model(steps, values.get("imports") or [], path)
        except ConfigError as error:
            wrong += error.problems
    return ({}, wrong) if wrong else (built, [])


def _of_report(report: Sequence[ReportName], task: Task) -> Iterator[Problem]:
    fitting = f"use {', '.join(REPORTS[task])}" if REPORTS[task] else "for which there are none"
    for index, metric in enumerate(report):
        if metric not in REPORTS[task]:
            yield Problem(f"metrics.report[{index}]", f"{metric} does not fit a model for {task}, {fitting}")


def _first_for_each_key(problems: Sequence[Problem]) -> list[Problem]:
    """Drop what follows from another mistake, such as a missing variable: its key has a problem already."""
    kept: dict[str, Problem] = {}
    for one in problems:
        kept.setdefault(one.path, one)
    return list(kept.values())
