"""Protobuf: decoders of messages whose class is made at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streamkernel.connectors.decode import UndecodableError, shown
from streamkernel.connectors.registry.descriptors import FileSet, import_protobuf
from streamkernel.connectors.registry.framing import message_indexes
from streamkernel.connectors.registry.message_count import MessageCounter
from streamkernel.connectors.registry.plain import base64_text, decimal_number

__all__ = ["ProtobufDecoder"]

Take: TypeAlias = Callable[[Any], Any]

_NANOS = 1e9
# The number of the field that holds the value of an entry of a map.
_MAP_VALUE = 2
# A topic has one or a few kinds of messages; a file that is out for harm may have thousands.
_MOST_PARSERS = 100
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


class ProtobufDecoder:
    """Decodes values of one Protobuf schema, in the wire format of schema registries.

    Fields have the names of the schema. One with presence (``optional``, in a ``oneof``, a message) that is not set is
    absent, as are empty repeated fields and maps; others have their default. Enums become their names, bytes base64,
    ``Timestamp`` and ``Duration`` seconds, wrappers what they wrap, ``Struct`` a mapping.

    Parameters
    ----------
    files
        The messages of the schema.
    size
        How many characters the schema has.
    message
        The full name of the only message to be decoded; None: every one of the main file.

    """

    def __init__(self, files: FileSet, size: int, message: str | None = None) -> None:
        self.size = size
        self._files = files
        self._message = message
        self._error: type[Exception] = import_protobuf().message.DecodeError
        self._takers = _Takers()
        self._parsers: dict[str, tuple[Any, Take, MessageCounter]] = {}
        if message is not None:
            files.indexes(message)

    def decode(self, value: bytes) -> Any:
        """Return a message as JSON would have it; see `PayloadDecoder.decode`."""
        indexes, at = message_indexes(value)
        name = self._files.name(indexes)
        if name is None or (self._message is not None and name != self._message):
            what = f"is {name}" if name else f"has the indexes {list(indexes)}, which no message of the schema has"
            raise UndecodableError("schema", f"the message {what}{f', not {self._message}' if self._message else ''}")
        payload = value[at:]
        try:
            make, take, counter = self._parser(name)
            counter.check(payload)
            return take(make.FromString(payload))
        except self._error:
            raise UndecodableError("schema", f"the bytes are not a Protobuf message {name}") from None
        except RecursionError:
            raise UndecodableError("nested", "the message is nested too deeply") from None

    def _parser(self, name: str) -> tuple[Any, Take, MessageCounter]:
        if name not in self._parsers:
            if len(self._parsers) >= _MOST_PARSERS:
                self._parsers.clear()
            descriptor = self._files.descriptor(name)
            counter = MessageCounter(descriptor)
            self._parsers[name] = self._files.message_class(name), self._takers.of(descriptor), counter
        return self._parsers[name]


class _Takers:
    """Makes functions that take the plain values out of messages; one for each type, which may contain itself."""

    def __init__(self) -> None:
        self._known: dict[str, Take] = {}
        self._enums: dict[str, dict[int, str]] = {}

    def of(self, message: Any) -> Take:
        name: str = message.full_name
        if name not in self._known:
            self._known[name] = _special(name) or self._fields(message)
        return self._known[name]

    def _fields(self, message: Any) -> Take:
        takers = [(field.name, self._field(field)) for field in message.fields]
        return lambda value: {name: take(value) for name, take in takers}

    def _field(self, field: Any) -> Take:
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_number.get(_MAP_VALUE)
            if value is None or not field.is_repeated:
                raise UndecodableError("schema", f"the map {shown(name)} of its schema is none")
            item = self._value(value)
            return lambda message: {_key(key): item(one) for key, one in getattr(message, name).items()} or None
        item = self._value(field)
        if field.is_repeated:
            return lambda message: [item(one) for one in getattr(message, name)] or None
        if field.has_presence:
            return lambda message: item(getattr(message, name)) if message.HasField(name) else None
        return lambda message: item(getattr(message, name))

    def _value(self, field: Any) -> Take:
        if field.message_type is not None:
            # Made when it is first needed: types may contain themselves, or one another thousands of times.
            within = field.message_type
            return lambda value: self.of(within)(value)
        if field.enum_type is not None:
            enum = field.enum_type
            if enum.full_name not in self._enums:
                self._enums[enum.full_name] = {one.number: one.name for one in reversed(enum.values)}
            names = self._enums[enum.full_name]
            return lambda number: names.get(number, number)
        return base64_text if field.type == field.TYPE_BYTES else _same


def _same(value: Any) -> Any:
    return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _special(name: str) -> Take | None:
    """Return how a message is taken that JSON has a form of its own for; None for any other."""
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        return lambda value: value.seconds + value.nanos / _NANOS
    if name == "google.protobuf.BytesValue":
        return lambda value: base64_text(value.value)
    if name in _WRAPPERS:
        return lambda value: value.value
    return {
        "google.protobuf.Struct": _struct,
        "google.protobuf.Value": _any_value,
        "google.protobuf.ListValue": _listed,
        "confluent.type.Decimal": _decimal,
    }.get(name)


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
    if not 0 <= value.scale <= 1000:
        raise UndecodableError("schema", f"a decimal has {value.scale} digits after the point")
    return decimal_number(value.value, value.scale)
