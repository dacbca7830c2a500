"""The schemas of lines of output, for topics that have a schema registry."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.decode import TargetType
from connectors.registry.line_schema import LineField, LineSchema, Scalar

__all__ = ["dead_letter_schema", "prediction_schema"]

_LABELS: Mapping[TargetType, Scalar] = {"str": "text", "int": "integer", "bool": "boolean", "float": "number"}
_POSITION = (LineField("partition", "integer", optional=False), LineField("offset", "integer", optional=False))


def prediction_schema(label: TargetType) -> LineSchema:
    """Return the schema of what `streamkernel.daemon.stream.lines.predictions` makes, for labels of a type."""
    return LineSchema(
        "Prediction",
        (
            LineField("position", LineSchema("Position", _POSITION), optional=False),
            LineField("prediction", _LABELS[label]),
            LineField("target", _LABELS[label]),
            LineField("probabilities", "numbers"),
            LineField("std", "number"),
        ),
    )


def dead_letter_schema() -> LineSchema:
    """Return the schema of what `streamkernel.daemon.stream.lines.dead_letter` makes."""
    position = LineSchema("Position", (*_POSITION, LineField("source", "text")))
    return LineSchema(
        "DeadLetter",
        (
            LineField("position", position, optional=False),
            *(LineField(name, "text", optional=False) for name in ("reason", "detail", "encoding", "raw")),
        ),
    )
