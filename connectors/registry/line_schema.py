"""Schemas of output lines: one description, written as Avro, JSON Schema and Protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import orjson

from streamkernel.connectors.registry.protobuf import import_protobuf
from streamkernel.connectors.registry.settings import ValueFormat

__all__ = ["REST", "LineField", "LineSchema", "Scalar", "file_descriptor", "schema_text"]

Scalar: TypeAlias = Literal["text", "boolean", "integer", "number", "numbers", "texts"]
"""The type of a field; the last two are maps from names to numbers and to texts."""

REST = "extra"
"""The field of Avro and Protobuf with everything in a line that its schema has no field for, as text."""

# The type of a scalar, or of a map's values: in Avro, JSON Schema and Protobuf.
_TYPES = {
    "text": ("string", "string", "TYPE_STRING"),
    "boolean": ("boolean", "boolean", "TYPE_BOOL"),
    "integer": ("long", "integer", "TYPE_INT64"),
    "number": ("double", "number", "TYPE_DOUBLE"),
    "numbers": ("double", ["number", "null"], "TYPE_DOUBLE"),
    "texts": ("string", "string", "TYPE_STRING"),
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

    @property
    def numbered(self) -> list[tuple[int, LineField]]:
        """The fields with their numbers in Protobuf, where the rest of a line is the first one that was added."""
        return [*enumerate(self.fields, 1), *enumerate(self.added, _REST_NUMBER)]


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
        return "\n".join(['syntax = "proto3";', f"package {_NAMESPACE};", *_message(_with_rest(schema)), ""])
    if value_format == "json_schema":
        return orjson.dumps({"title": schema.name, **_object(schema)}).decode()
    tree = _record(schema)
    tree["fields"].append({"name": REST, "type": {"type": "map", "values": "string"}, "default": {}})
    return orjson.dumps({"namespace": _NAMESPACE, **tree}).decode()


def _record(schema: LineSchema) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for field in (*schema.fields, *schema.added):
        kind: Any = _record(field.holds) if isinstance(field.holds, LineSchema) else _TYPES[field.holds][0]
        kind = {"type": "map", "values": kind} if field.is_map else kind
        nullable = {"type": ["null", kind], "default": None}
        fields.append({"name": field.name, **(nullable if field.optional else {"type": kind})})
    return {"type": "record", "name": schema.name, "fields": fields}


def _object(schema: LineSchema) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for field in (*schema.fields, *schema.added):
        kind = _object(field.holds) if isinstance(field.holds, LineSchema) else {"type": _TYPES[field.holds][1]}
        kind = {"type": "object", "additionalProperties": kind} if field.is_map else kind
        properties[field.name] = {**kind, "type": [kind["type"], "null"]} if field.optional else kind
    required = [field.name for field in schema.fields if not field.optional]
    return {"type": "object", "properties": properties, "required": required}


def _message(schema: LineSchema, indent: str = "") -> Iterator[str]:
    yield f"{indent}message {schema.name} {{"
    for number, field in schema.numbered:
        if isinstance(field.holds, LineSchema):
            yield from _message(field.holds, indent + "  ")
            kind = field.holds.name
        else:
            scalar = _TYPES[field.holds][2].removeprefix("TYPE_").lower()
            kind = f"map<string, {scalar}>" if field.is_map else f"{'optional ' if field.optional else ''}{scalar}"
        yield f"{indent}  {kind} {field.name} = {number};"
    yield f"{indent}}}"


def _with_rest(schema: LineSchema) -> LineSchema:
    """Return an outermost message with its field for the rest of a line."""
    return LineSchema(schema.name, schema.fields, (LineField(REST, "texts"), *schema.added))


def file_descriptor(schema: LineSchema) -> Any:
    """Return the Protobuf file of a schema: its outermost message has a field for the rest of a line."""
    file = import_protobuf().descriptor_pb2.FileDescriptorProto(name="lines.proto", package=_NAMESPACE, syntax="proto3")
    _describe(file.message_type.add(), _with_rest(schema), f".{_NAMESPACE}")
    return file


def _describe(message: Any, schema: LineSchema, scope: str) -> None:
    message.name = schema.name
    full = f"{scope}.{schema.name}"
    for number, one in schema.numbered:
        field = message.field.add(name=one.name, number=number, label="LABEL_OPTIONAL")
        if isinstance(one.holds, LineSchema):
            field.type, field.type_name = field.TYPE_MESSAGE, f"{full}.{one.holds.name}"
            _describe(message.nested_type.add(), one.holds, full)
            continue
        kind = _TYPES[one.holds][2]
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
