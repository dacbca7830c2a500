"""Schemas for the tests, as a registry has them."""

from __future__ import annotations

import io
from typing import Any

from streamkernel.connectors.registry.framing import frame
from streamkernel.connectors.registry.line_schema import LineField, LineSchema

#: The schema of a sink's lines.
LINE = LineSchema(
    "Line",
    (
        LineField(
            "position", LineSchema("Position", (LineField("offset", "integer", optional=False),)), optional=False
        ),
        LineField("prediction", "text"),
        LineField("sure", "boolean"),
        LineField("probabilities", "numbers"),
        LineField("std", "number"),
    ),
)


def avro_value(schema: Any, datum: Any, number: int = 1) -> bytes:
    """Encode a value as fastavro does, in the wire format."""
    import fastavro

    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), datum)
    return frame(number) + out.getvalue()


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """An Avro record."""
    return {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields.items()]}
