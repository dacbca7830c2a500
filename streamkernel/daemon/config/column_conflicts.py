"""Columns of predictions that cannot be: names that are taken, classes of another type, messages without Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from streamkernel.connectors.class_columns import class_columns
from streamkernel.connectors.target_columns import SpreadTargets, names_of
from streamkernel.daemon.base.line_names import line_names
from streamkernel.daemon.config.columns import (
    ClassColumnsConfig,
    KafkaPredictionsConfig,
    ParquetPredictionsConfig,
    PassingColumnsConfig,
)
from streamkernel.daemon.config.problems import shown
from streamkernel.daemon.config.schema import Config, KafkaSourceConfig
from streamkernel.daemon.config.several_targets import is_list

__all__ = ["column_conflicts"]

_TYPES: dict[str, tuple[type, str]] = {"str": (str, "text, in quotes"), "int": (int, "int"), "bool": (bool, "bool")}
_OF_MESSAGES = ("kafka.key", "kafka.timestamp", "kafka.headers", "kafka.header.")


def column_conflicts(config: Config) -> Iterator[str]:
    """Yield one line for each setting of the predictions' columns that another one rules out."""
    output = config.predictions
    if isinstance(output, PassingColumnsConfig):
        yield from _of_names(config, output)
    if isinstance(output, ClassColumnsConfig):
        yield from _of_classes(config, output)
    if isinstance(output, KafkaPredictionsConfig) and not isinstance(config.source, KafkaSourceConfig):
        if output.key == "source" and "key" in output.model_fields_set:
            yield "predictions.key: source needs a source of kind kafka: only its messages have keys. Use position"
        if output.pass_through:
            yield "predictions.pass_through: needs a source of kind kafka: only messages have headers and timestamps"
    if isinstance(output, ParquetPredictionsConfig) and output.path == "-":
        yield "predictions.path: parquet goes to a folder, not to standard output: name a folder, or use jsonl or csv"
    elif isinstance(output, ParquetPredictionsConfig):
        yield from _in_folder(config, output.path)


def _in_folder(config: Config, path: str) -> Iterator[str]:
    """Yield what stands in a folder of parts, with which it would be read, and renamed by --fresh."""
    folder = Path(os.path.realpath(path))
    places: dict[str, str | list[str] | None]
    places = {f"{key}.path": getattr(source, "path", None) for key, source in config.sources.items()}
    places["dead_letters.path"] = getattr(config.dead_letters, "path", None)
    places["checkpoint.directory"] = None if config.checkpoint is None else config.checkpoint.directory
    for key, place in places.items():
        several = place if isinstance(place, list) else [place]
        if any(one not in (None, "-") and folder in Path(os.path.realpath(one)).parents for one in several):
            yield f"predictions.path: must be a folder only for its parts, and {key} is in it: name another folder"


def _of_names(config: Config, output: PassingColumnsConfig) -> Iterator[str]:
    classes = output.classes if isinstance(output, ClassColumnsConfig) else ()
    own = line_names(
        classes,
        parts_of_position=isinstance(output, ParquetPredictionsConfig),
        several_models=config.models is not None,
    )
    if is_list(config.source):  # a table has columns of each target
        own += tuple(SpreadTargets(names_of(config.source.target)).names)  # type: ignore[union-attr]
    taken: set[str] = set()
    for index, one in enumerate(output.include):
        key, name = f"predictions.include[{index}]", one.name or one.column
        if name in own:
            yield (
                f"{key}: each line has {name} already: write {{column: {one.column}, name: ANOTHER}} to pass it "
                "through under another name"
            )
        if name in taken:
            yield f"{key}: {shown(name)} is listed twice: remove one, or rename it"
        taken.add(name)
        if one.column.startswith(_OF_MESSAGES) and config.source.kind in ("csv", "river"):
            yield f"{key}: {shown(one.column)} exists only in Kafka messages, and source.kind is {config.source.kind}"


def _of_classes(config: Config, output: ClassColumnsConfig) -> Iterator[str]:
    columns = class_columns(output.classes)[:-1]
    for index, (label, column) in enumerate(zip(output.classes, columns, strict=True)):
        if column in columns[:index]:
            yield f"predictions.classes[{index}]: {shown(label)} is listed twice"
    targets = config.source if config.labels is None else config.labels.source
    wanted = _TYPES.get(getattr(targets, "target_type", ""))
    if wanted is None:
        return
    for index, label in enumerate(output.classes):
        if type(label) is not wanted[0]:
            yield f"predictions.classes[{index}]: must be {wanted[1]}, as the target_type says, got {shown(label)}"
