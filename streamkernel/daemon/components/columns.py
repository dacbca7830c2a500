"""The columns of prediction lines: columns of the record that pass through, columns of classes, and tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamkernel.connectors.class_columns import class_columns
from streamkernel.connectors.target_columns import SpreadTargets, names_of
from streamkernel.daemon.base.line_names import line_names
from streamkernel.daemon.base.model import Model, task_of
from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.components.late_labels import label_source
from streamkernel.daemon.config.outputs import (
    ClassColumnsConfig,
    KafkaPredictionsConfig,
    ParquetPredictionsConfig,
    PassingColumnsConfig,
)
from streamkernel.daemon.config.problems import Problem, shown
from streamkernel.daemon.config.schema import Config
from streamkernel.daemon.config.sources import is_list

__all__ = ["COLUMNS", "has_typed_lines"]

_TYPES: dict[str, tuple[type, str]] = {"str": (str, "text, in quotes"), "int": (int, "int"), "bool": (bool, "bool")}
_OF_MESSAGES = ("kafka.key", "kafka.timestamp", "kafka.headers", "kafka.header.")


_WITHOUT_CLASSES = {"regression": "a regressor", "novelty": "a novelty detector", "density_ratio": "a density ratio"}


def _of_names(config: Config) -> Iterator[Problem]:
    output = config.predictions
    assert isinstance(output, PassingColumnsConfig)
    own = line_names(
        output.classes if isinstance(output, ClassColumnsConfig) else (),
        parts_of_position=isinstance(output, ParquetPredictionsConfig),
        several_models=config.models is not None,
    )
    if is_list(config.source):  # a table has columns of each target
        own += tuple(SpreadTargets(names_of(config.source.target)).names)  # type: ignore[union-attr]
    taken: set[str] = set()
    for index, one in enumerate(output.include):
        key, name = f"predictions.include[{index}]", one.name or one.column
        if name in own:
            renamed = f"write {{column: {one.column}, name: ANOTHER}} to pass it through under another name"
            yield Problem(key, f"each line has {name} already: {renamed}")
        if name in taken:
            yield Problem(key, f"{shown(name)} is listed twice: remove one, or rename it")
        taken.add(name)
        if one.column.startswith(_OF_MESSAGES) and config.source.kind in ("csv", "river"):
            where = f"source.kind is {config.source.kind}"
            yield Problem(key, f"{shown(one.column)} exists only in Kafka messages, and {where}")


def _of_classes(config: Config) -> Iterator[Problem]:
    output = config.predictions
    assert isinstance(output, ClassColumnsConfig)
    columns = class_columns(output.classes)[:-1]
    wanted = _TYPES.get(getattr(label_source(config), "target_type", ""))
    for index, (label, column) in enumerate(zip(output.classes, columns, strict=True)):
        key = f"predictions.classes[{index}]"
        if column in columns[:index]:
            yield Problem(key, f"{shown(label)} is listed twice")
        if wanted is not None and type(label) is not wanted[0]:
            yield Problem(key, f"must be {wanted[1]}, as the target_type says, got {shown(label)}")


def _of_folder(config: Config) -> Iterator[Problem]:
    """Yield what is in a folder of parts: it would be read with them, and renamed by --fresh."""
    assert isinstance(config.predictions, ParquetPredictionsConfig)
    if config.predictions.path == "-":
        why = "parquet goes to a folder, not to standard output: name a folder, or use jsonl or csv"
        yield Problem("predictions.path", why)
        return
    folder = Path(os.path.realpath(config.predictions.path))
    places: dict[str, str | list[str] | None]
    places = {f"{key}.path": getattr(source, "path", None) for key, source in config.sources.items()}
    places["dead_letters.path"] = getattr(config.dead_letters, "path", None)
    places["checkpoint.directory"] = None if config.checkpoint is None else config.checkpoint.directory
    for key, place in places.items():
        several = place if isinstance(place, list) else [place]
        if any(one not in (None, "-") and folder in Path(os.path.realpath(one)).parents for one in several):
            why = f"must be a folder only for its parts, and {key} is in it: name another folder"
            yield Problem("predictions.path", why)


def has_typed_lines(config: Config) -> bool:
    """Return whether lines of predictions have a schema."""
    output = config.predictions
    return isinstance(output, ParquetPredictionsConfig) or getattr(output, "value_format", "json") != "json"


def _asks_for_key(config: Config) -> bool:
    output = config.predictions
    return isinstance(output, KafkaPredictionsConfig) and output.key == "source" and "key" in output.model_fields_set


def _classes_of_models(config: Config, models: Mapping[str, Model], published: str) -> Iterator[Problem]:  # noqa: ARG001
    if (task := task_of(models[published])) in _WITHOUT_CLASSES:
        yield Problem("predictions.classes", f"not for {_WITHOUT_CLASSES[task]}, which has no classes")


def _types_of_models(config: Config, models: Mapping[str, Model], published: str) -> Iterator[Problem]:
    for section, source in config.sources.items():
        target, kind = getattr(source, "target", None), getattr(source, "target_type", "float")
        is_score = task_of(models[published]) in ("novelty", "density_ratio") and target is not None
        if is_score and kind != "float":
            why = f"a score is a number, {section}.target is a {kind}, and this output needs one type for both"
            yield Problem("predictions", f"{why}: use jsonl, csv or json")


COLUMNS = (
    Component(
        "passed_columns",
        lambda config: ["predictions.include"] if isinstance(config.predictions, PassingColumnsConfig) else [],
        problems=_of_names,
    ),
    Component(
        "class_columns",
        lambda config: ["predictions.classes"] if getattr(config.predictions, "classes", ()) else [],
        excludes={"several_targets": "not with several targets, whose labels are true and false: leave it out"},
        problems=_of_classes,
        model_problems=_classes_of_models,
    ),
    Component(
        "typed_lines",
        lambda config: ["predictions"] if has_typed_lines(config) else [],
        excludes={
            "several_targets": "this output has one column for the prediction, not several: use jsonl, csv or json"
        },
        model_problems=_types_of_models,
    ),
    Component(
        "parquet",
        lambda config: ["predictions"] if isinstance(config.predictions, ParquetPredictionsConfig) else [],
        problems=_of_folder,
    ),
    Component(
        "message_keys",
        lambda config: ["predictions.key"] if _asks_for_key(config) else [],
        needs={"messages": "source needs a source of kind kafka: only its messages have keys. Use position"},
    ),
    Component(
        "message_columns",
        lambda config: ["predictions.pass_through"] if getattr(config.predictions, "pass_through", ()) else [],
        needs={"messages": "needs a source of kind kafka: only messages have headers and timestamps"},
    ),
)
