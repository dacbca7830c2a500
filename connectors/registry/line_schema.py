"""Schemas of lines of output: one description, written as Avro, JSON Schema and Protobuf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import orjson

from streamkernel.connectors.registry.descriptors import import_protobuf
from streamkernel.connectors.registry.settings import ValueFormat

__all__ = ["REST", "LineField", "LineSchema", "Scalar", "file_descriptor", "schema_text"]

Scalar: TypeAlias = Literal["text", "boolean", "integer", "number", "numbers", "texts"]
"""What a field holds; the last two are maps from names to numbers and to texts."""

REST = "extra"
"""The field of Avro and Protobuf that holds, as text, what a line has besides the fields of its schema."""

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
_PROTOBUF: Mapping[Scalar, str] = {"text": "string", "boolean": "bool", "integer": "int64", "number": "double"}
_NAMESPACE = "streamkernel"


class LineSchema(NamedTuple):
    """The name of a record or a message, its fields, and after them those that a configuration adds.

    The order of the fields is their number in Protobuf, from 1 to 14, and that of the added ones from 16: a new one
    goes to the end of its kind.
    """

    name: str
    fields: tuple[LineField, ...]
    added: tuple[LineField, ...] = ()


class LineField(NamedTuple):
    """A field of a line: what it holds, and whether it may be absent or null."""

    name: str
    holds: Scalar | LineSchema
    optional: bool = True


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
        return "\n".join(['syntax = "proto3";', f"package {_NAMESPACE};", *_message(schema, "", True), ""])
    tree = _record(schema, True) if value_format == "avro" else {"title": schema.name, **_object(schema)}
    return orjson.dumps(tree).decode()


def _record(schema: LineSchema, outermost: bool = False) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for name, holds, optional in (*schema.fields, *schema.added):
        kind = _record(holds) if isinstance(holds, LineSchema) else _AVRO[holds]
        nullable = {"type": ["null", kind], "default": None}
        fields.append({"name": name, **(nullable if optional else {"type": kind})})
    if outermost:
        fields.append({"name": REST, "type": _AVRO["texts"], "default": {}})
    space = {"namespace": _NAMESPACE} if outermost else {}
    return {"type": "record", "name": schema.name, **space, "fields": fields}


def _object(schema: LineSchema) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, holds, optional in (*schema.fields, *schema.added):
        kind = _object(holds) if isinstance(holds, LineSchema) else dict(_JSON[holds])
        properties[name] = {**kind, "type": [kind["type"], "null"]} if optional else kind
    required = [field.name for field in schema.fields if not field.optional]
    return {"type": "object", "properties": properties, "required": required}


_REST_NUMBER = 15


def _numbered(schema: LineSchema) -> Iterator[tuple[int, LineField]]:
    yield from enumerate(schema.fields, 1)
    yield from enumerate(schema.added, _REST_NUMBER + 1)


def _message(schema: LineSchema, indent: str, outermost: bool) -> Iterator[str]:
    yield f"{indent}message {schema.name} {{"
    for _, field in _numbered(schema):
        if isinstance(field.holds, LineSchema):
            yield from _message(field.holds, indent + "  ", False)
    for number, (name, holds, optional) in _numbered(schema):
        if isinstance(holds, LineSchema):
            kind = holds.name
        elif holds in ("numbers", "texts"):
            kind = f"map<string, {_PROTOBUF['number' if holds == 'numbers' else 'text']}>"
        else:
            kind = f"{'optional ' if optional else ''}{_PROTOBUF[holds]}"
        yield f"{indent}  {kind} {name} = {number};"
    if outermost:
        yield f"{indent}  map<string, string> {REST} = {_REST_NUMBER};"
    yield f"{indent}}}"


def file_descriptor(schema: LineSchema) -> Any:
    """Return the descriptor of the file that the Protobuf text of a schema is."""
    descriptors = import_protobuf().descriptor_pb2
    file = descriptors.FileDescriptorProto(name="lines.proto", package=_NAMESPACE, syntax="proto3")
    rest = LineField(REST, "texts")
    _describe(file.message_type.add(), schema, f".{_NAMESPACE}", {**dict(_numbered(schema)), _REST_NUMBER: rest})
    return file


def _describe(message: Any, schema: LineSchema, scope: str, fields: Mapping[int, LineField]) -> None:
    kinds = import_protobuf().descriptor_pb2.FieldDescriptorProto
    types = {
        "text": kinds.TYPE_STRING,
        "boolean": kinds.TYPE_BOOL,
        "integer": kinds.TYPE_INT64,
        "number": kinds.TYPE_DOUBLE,
    }
    message.name = schema.name
    full = f"{scope}.{schema.name}"
    for number, (name, holds, optional) in fields.items():
        field = message.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL)
        if isinstance(holds, LineSchema):
            field.type, field.type_name = kinds.TYPE_MESSAGE, f"{full}.{holds.name}"
            _describe(message.nested_type.add(), holds, full, dict(_numbered(holds)))
        elif holds in ("numbers", "texts"):
            entry = message.nested_type.add(name=f"{''.join(part.title() for part in name.split('_'))}Entry")
            entry.options.map_entry = True
            value = types["number" if holds == "numbers" else "text"]
            entry.field.add(name="key", number=1, label=kinds.LABEL_OPTIONAL, type=kinds.TYPE_STRING)
            entry.field.add(name="value", number=2, label=kinds.LABEL_OPTIONAL, type=value)
            field.type, field.type_name, field.label = kinds.TYPE_MESSAGE, f"{full}.{entry.name}", kinds.LABEL_REPEATED
        else:
            field.type = types[holds]
            if optional:
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{name}")


assert set(_AVRO) == set(_JSON) == set(get_args(Scalar))
