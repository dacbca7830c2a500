"""Schemas for the tests, as a registry has them."""

from __future__ import annotations

import io
import json
from typing import Any

from streamkernel.connectors.registry.client import RegisteredSchema, SchemaSet
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


def schema_set(schema: Any, kind: str = "AVRO", **references: Any) -> SchemaSet:
    """A schema and what it refers to, each of text or as a tree."""
    texts = {name: one if isinstance(one, str) else json.dumps(one) for name, one in {"": schema, **references}.items()}
    made = {name: RegisteredSchema(kind, text) for name, text in texts.items()}
    return SchemaSet(made.pop(""), made)


def avro_value(schema: Any, datum: Any, number: int = 1) -> bytes:
    """Encode a value as fastavro does, in the wire format."""
    import fastavro

    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), datum)
    return frame(number) + out.getvalue()


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """An Avro record."""
    return {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields.items()]}
