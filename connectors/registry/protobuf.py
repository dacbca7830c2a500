"""Protobuf values: the library parses a message, and this module returns its JSON form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamkernel.connectors.decode import UndecodableError, shown
from streamkernel.connectors.registry.descriptors import FileSet, import_protobuf
from streamkernel.connectors.registry.framing import message_indexes
from streamkernel.connectors.registry.plain import base64_text, decimal_number

__all__ = ["ProtobufDecoder"]

_NANOS = 1e9
# The number of the value's field in an entry of a map.
_MAP_VALUE = 2
_LARGEST_SCALE = 1000


class ProtobufDecoder:
    """A decoder of the values of one Protobuf schema, in the wire format of schema registries.

    Fields have the names of the schema. A field with presence (``optional``, in a ``oneof``, a message) is absent if it
    is not set. So are empty repeated fields and maps. Other fields have their default. Enums become their names, bytes
    base64, ``Timestamp`` and ``Duration`` seconds, wrappers their value, ``Struct`` a mapping.

    Parameters
    ----------
    files
        The messages of the schema.
    message
        The full name of the only message to decode; None: every one of the main file.

    """

    def __init__(self, files: FileSet, message: str | None = None) -> None:
        self._files = files
        self._message = message
        self._error: type[Exception] = import_protobuf().message.DecodeError
        self._fields: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {}
        if message is not None:
            files.indexes(message)

    def decode(self, value: bytes) -> Any:
        """Return a message as JSON would have it; see `PayloadDecoder.decode`."""
        indexes, at = message_indexes(value)
        name = self._files.name(indexes)
        if name is None or (self._message is not None and name != self._message):
            what = f"is {name}" if name else f"has the indexes {list(indexes)}, which no message of the schema has"
            raise UndecodableError("schema", f"the message {what}{f', not {self._message}' if self._message else ''}")
        try:
            return self._plain(self._files.message_class(name).FromString(value[at:]))
        except self._error:
            raise UndecodableError("schema", f"the bytes are not a Protobuf message {name}") from None
        except RecursionError:
            raise UndecodableError("nested", "the message is nested too deeply") from None

    def _plain(self, message: Any) -> Any:
        """Return a message's JSON form."""
        descriptor = message.DESCRIPTOR
        special = _SPECIAL.get(descriptor.full_name)
        if special is not None:
            return special(message)
        if descriptor.full_name not in self._fields:
            self._fields[descriptor.full_name] = [(field.name, self._field(field)) for field in descriptor.fields]
        return {name: take(message) for name, take in self._fields[descriptor.full_name]}

    def _field(self, field: Any) -> Callable[[Any], Any]:
        """Return the reader of a field of a message."""
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_number.get(_MAP_VALUE)
            if value is None or not field.is_repeated:
                raise UndecodableError("schema", f"the map {shown(name)} of its schema is invalid")
            item = self._value(value)
            return lambda message: {_key(key): item(one) for key, one in getattr(message, name).items()} or None
        item = self._value(field)
        if field.is_repeated:
            return lambda message: [item(one) for one in getattr(message, name)] or None
        if field.has_presence:
            return lambda message: item(getattr(message, name)) if message.HasField(name) else None
        return lambda message: item(getattr(message, name))

    def _value(self, field: Any) -> Callable[[Any], Any]:
        """Return the reader of one value of a field."""
        if field.message_type is not None:
            return self._plain
        if field.enum_type is not None:
            names = {one.number: one.name for one in reversed(field.enum_type.values)}
            return lambda number: names.get(number, number)
        return base64_text if field.type == field.TYPE_BYTES else lambda value: value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _seconds(value: Any) -> float:
    return float(value.seconds + value.nanos / _NANOS)


def _struct(value: Any) -> dict[str, Any]:
    return {name: _any_value(one) for name, one in value.fields.items()}


def _listed(value: Any) -> list[Any]:
    return [_any_value(one) for one in value.values]


def _any_value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    if kind == "struct_value":
        return _struct(value.struct_value)
    return _listed(value.list_value) if kind == "list_value" else getattr(value, kind)


def _decimal(value: Any) -> int | float:
    if not 0 <= value.scale <= _LARGEST_SCALE:
        raise UndecodableError("schema", f"a decimal has {value.scale} digits after the point")
    return decimal_number(value.value, value.scale)


# Messages with a JSON form of their own.
_SPECIAL: Mapping[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": _seconds,
    "google.protobuf.Duration": _seconds,
    "google.protobuf.Struct": _struct,
    "google.protobuf.Value": _any_value,
    "google.protobuf.ListValue": _listed,
    "google.protobuf.BytesValue": lambda value: base64_text(value.value),
    "confluent.type.Decimal": _decimal,
    **{
        f"google.protobuf.{kind}Value": lambda value: value.value
        for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
    },
}
