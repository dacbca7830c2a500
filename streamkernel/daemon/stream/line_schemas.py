"""The schemas of lines of output, for topics that have a schema registry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from streamkernel.connectors.decode import TargetType
from streamkernel.connectors.pass_through import ColumnType, PassedColumn
from streamkernel.connectors.registry.line_schema import REST, LineField, LineSchema, Scalar

__all__ = ["dead_letter_schema", "prediction_schema"]

_SCALARS: Mapping[ColumnType, Scalar] = {
    "str": "text",
    "int": "integer",
    "bool": "boolean",
    "float": "number",
    "timestamp": "text",
}
# What Avro and Protobuf both take for the name of a field.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_POSITION = (LineField("partition", "integer", optional=False), LineField("offset", "integer", optional=False))


def prediction_schema(
    label: TargetType, passed: Sequence[PassedColumn] = (), *, several_models: bool = False
) -> LineSchema:
    """Return the schema of what `streamkernel.daemon.stream.lines.predictions` makes.

    Parameters
    ----------
    label
        What predictions and targets are.
    passed
        The columns that pass through. One without a type, or whose name cannot be that of a field, is left out of the
        schema: it is written as text among the rest of a line.
    several_models
        Whether a line has the name of its model; what others predicted is text among the rest, too.

    Examples
    --------
    >>> passed = [PassedColumn("id", "id", "int"), PassedColumn("color", "color"), PassedColumn("a b", "a b", "str")]
    >>> prediction_schema("bool", passed).added
    (LineField(name='id', holds='integer', optional=True),)

    """
    fields = (
        LineField("position", LineSchema("Position", _POSITION), optional=False),
        LineField("prediction", _SCALARS[label]),
        LineField("target", _SCALARS[label]),
        LineField("probabilities", "numbers"),
        LineField("std", "number"),
        LineField("checkpoint", "integer"),
        *([LineField("model", "text")] if several_models else []),
    )
    return LineSchema("Prediction", fields, tuple(_added(fields, passed)))


def _added(fields: Sequence[LineField], passed: Sequence[PassedColumn]) -> Iterator[LineField]:
    # Protobuf makes lowerCamelCase of names for JSON, and a message of each map: these must differ, too.
    taken = {_folded(name) for field in fields for name in (field.name, f"{field.name}Entry")}
    taken |= {REST, f"{REST}entry"}
    for _, name, kind in passed:
        if kind is not None and _NAME.match(name) and _folded(name) not in taken:
            taken.add(_folded(name))
            yield LineField(name, _SCALARS[kind])


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def dead_letter_schema() -> LineSchema:
    """Return the schema of what `streamkernel.daemon.stream.lines.dead_letter` makes."""
    position = LineSchema("Position", (*_POSITION, LineField("source", "text")))
    return LineSchema(
        "DeadLetter",
        (
            LineField("position", position, optional=False),
            *(LineField(name, "text", optional=False) for name in ("reason", "detail", "encoding", "raw")),
            LineField("cut_at", "integer"),
        ),
    )
