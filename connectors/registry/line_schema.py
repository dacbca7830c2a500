"""Schemas of output lines: one description, written as Avro, JSON Schema and Protobuf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import orjson

from streamkernel.connectors.registry.descriptors import import_protobuf
from streamkernel.connectors.registry.settings import ValueFormat

__all__ = ["REST", "LineField", "LineSchema", "Scalar", "file_descriptor", "schema_text"]

Scalar: TypeAlias = Literal["text", "boolean", "integer", "number", "numbers", "texts"]
"""The type of a field; the last two are maps from names to numbers and to texts."""

REST = "extra"
"""The field of Avro and Protobuf with everything in a line that its schema has no field for, as text."""

_AVRO: Mapping[Scalar, Any] = {
    "text": "string",
    "boolean": "boolean",
    "integer": "long",
    "number": "double",
    "numbers": {"type": "map", "values": "double"},
    "texts": {"type": "map", "values": "string"},
}
_JSON: Mapping[Scalar, Mapping[str, Any]] = {
    "text": {"type": "string"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "numbers": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
    "texts": {"type": "object", "additionalProperties": {"type": "string"}},
}
_PROTOBUF: Mapping[Scalar, str] = {
    "text": "string",
    "boolean": "bool",
    "integer": "int64",
    "number": "double",
    "numbers": "double",
    "texts": "string",
}
_NAMESPACE = "streamkernel"
_REST_NUMBER = 15


class LineSchema(NamedTuple):
    """The name of a record or message, its fields, and the fields that a configuration adds.

    The order of the fields is their number in Protobuf, from 1 to 14; added fields begin at 16. Add a new field at the
    end of its kind.
    """

    name: str
    fields: tuple[LineField, ...]
    added: tuple[LineField, ...] = ()

    def numbered(self, outermost: bool) -> Iterator[tuple[int, LineField]]:
        """Yield each field with its number in Protobuf; the outermost message has the field for the rest."""
        yield from enumerate(self.fields, 1)
        yield from enumerate(self.added, _REST_NUMBER + 1)
        if outermost:
            yield _REST_NUMBER, LineField(REST, "texts")


class LineField(NamedTuple):
    """A field of a line: its type, and whether it may be absent or null."""

    name: str
    holds: Scalar | LineSchema
    optional: bool = True

    @property
    def is_map(self) -> bool:
        """Whether the field is a map."""
        return self.holds in ("numbers", "texts")


def schema_text(schema: LineSchema, value_format: ValueFormat) -> str:
    """Return a schema as a registry takes it.

    Examples
    --------
    >>> point = LineSchema("Point", (LineField("x", "number", optional=False), LineField("label", "text")))
    >>> print(schema_text(point, "protobuf"))
    syntax = "proto3";
    package streamkernel;
    message Point {
      double x = 1;
      optional string label = 2;
      map<string, string> extra = 15;
    }
    <BLANKLINE>

    """
    if value_format == "protobuf":
        return "\n".join(['syntax = "proto3";', f"package {_NAMESPACE};", *_message(schema), ""])
    if value_format == "json_schema":
        return orjson.dumps({"title": schema.name, **_object(schema)}).decode()
    tree = _record(schema)
    tree["fields"].append({"name": REST, "type": _AVRO["texts"], "default": {}})
    return orjson.dumps({"namespace": _NAMESPACE, **tree}).decode()


def _record(schema: LineSchema) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for name, holds, optional in (*schema.fields, *schema.added):
        kind = _record(holds) if isinstance(holds, LineSchema) else _AVRO[holds]
        nullable = {"type": ["null", kind], "default": None}
        fields.append({"name": name, **(nullable if optional else {"type": kind})})
    return {"type": "record", "name": schema.name, "fields": fields}


def _object(schema: LineSchema) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, holds, optional in (*schema.fields, *schema.added):
        kind = _object(holds) if isinstance(holds, LineSchema) else dict(_JSON[holds])
        properties[name] = {**kind, "type": [kind["type"], "null"]} if optional else kind
    required = [field.name for field in schema.fields if not field.optional]
    return {"type": "object", "properties": properties, "required": required}


def _message(schema: LineSchema, indent: str = "") -> Iterator[str]:
    yield f"{indent}message {schema.name} {{"
    for number, field in schema.numbered(outermost=not indent):
        if isinstance(field.holds, LineSchema):
            yield from _message(field.holds, indent + "  ")
            kind = field.holds.name
        elif field.is_map:
            kind = f"map<string, {_PROTOBUF[field.holds]}>"
        else:
            kind = f"{'optional ' if field.optional else ''}{_PROTOBUF[field.holds]}"
        yield f"{indent}  {kind} {field.name} = {number};"
    yield f"{indent}}}"


def file_descriptor(schema: LineSchema) -> Any:
    """Return the file descriptor of a schema's Protobuf text."""
    file = import_protobuf().descriptor_pb2.FileDescriptorProto(name="lines.proto", package=_NAMESPACE, syntax="proto3")
    _describe(file.message_type.add(), schema, f".{_NAMESPACE}", outermost=True)
    return file


def _describe(message: Any, schema: LineSchema, scope: str, outermost: bool) -> None:
    message.name = schema.name
    full = f"{scope}.{schema.name}"
    for number, one in schema.numbered(outermost):
        field = message.field.add(name=one.name, number=number, label="LABEL_OPTIONAL")
        if isinstance(one.holds, LineSchema):
            field.type, field.type_name = field.TYPE_MESSAGE, f"{full}.{one.holds.name}"
            _describe(message.nested_type.add(), one.holds, full, outermost=False)
            continue
        kind = f"TYPE_{_PROTOBUF[one.holds].upper()}"
        if one.is_map:
            entry = message.nested_type.add(name=f"{''.join(part.title() for part in one.name.split('_'))}Entry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label="LABEL_OPTIONAL", type="TYPE_STRING")
            entry.field.add(name="value", number=2, label="LABEL_OPTIONAL", type=kind)
            field.type, field.type_name = field.TYPE_MESSAGE, f"{full}.{entry.name}"
            field.label = field.LABEL_REPEATED
            continue
        field.type = field.Type.Value(kind)
        if one.optional:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{one.name}")
