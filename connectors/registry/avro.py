"""Avro: decoders made of a schema, which keep within bounds whatever bytes and schema are.

The compiled reader of fastavro recurses as deep as the bytes say, and with it the process dies; it also takes an array
of a billion nulls, which are no bytes at all. So values are read here, and schemas are parsed by fastavro.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.framing import HEAD_BYTES
from streamkernel.connectors.registry.plain import MOST_VALUES, base64_text, decimal_number
from streamkernel.connectors.registry.schemas import SchemaSet, UnusableSchemaError, parse_json

__all__ = ["AvroDecoder", "import_fastavro", "parse_avro"]

DEEPEST_RECORD = 64

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_DAY = 86_400
# Times become seconds, as those of a message are: of an instant since 1970, of a time since midnight.
_TIMES: Mapping[tuple[str, str], int] = {
    ("long", "timestamp-millis"): 1000,
    ("long", "timestamp-micros"): 1_000_000,
    ("long", "timestamp-nanos"): 1_000_000_000,
    ("long", "local-timestamp-millis"): 1000,
    ("long", "local-timestamp-micros"): 1_000_000,
    ("long", "local-timestamp-nanos"): 1_000_000_000,
    ("int", "time-millis"): 1000,
    ("long", "time-micros"): 1_000_000,
}


class AvroDecoder:
    """Decodes values of one Avro schema, in the wire format of schema registries.

    Times become seconds, decimals numbers, enums their symbols, bytes and fixed ones base64; a union becomes the value
    of its branch.

    Raises
    ------
    UnusableSchemaError
        Where the schema is none.

    """

    def __init__(self, schemas: SchemaSet) -> None:
        self.size = schemas.size
        parsed, named = parse_avro(schemas)
        self._decode = _Compiler(named).compile(parsed)

    def decode(self, value: bytes) -> Any:
        """Return a value as JSON would have it; see `PayloadDecoder.decode`."""
        cursor = _Cursor(value, HEAD_BYTES)
        try:
            decoded = self._decode(cursor)
        except IndexError:
            raise _unfit("it ends too soon") from None
        except RecursionError:
            raise UndecodableError("nested", "the record is nested too deeply") from None
        if cursor.at != len(value):
            raise _unfit(f"{len(value) - cursor.at:,} bytes are left over")
        return decoded


def import_fastavro() -> Any:
    """Return the package fastavro; raises `ConnectorError` where it is not installed."""
    try:
        import fastavro
    except ImportError:
        raise ConnectorError("value_format avro needs fastavro: pip install 'streamkernel[registry]'") from None
    return fastavro


def parse_avro(schemas: SchemaSet) -> tuple[Any, dict[str, Any]]:
    """Return a schema as fastavro parses it, and its named types by their full names."""
    parse_schema = import_fastavro().parse_schema
    named: dict[str, Any] = {}
    try:
        for one in schemas.references.values():
            parse_schema(parse_json(one.text), named)
        return parse_schema(parse_json(schemas.main.text), named), named
    except UnusableSchemaError:
        raise
    except Exception as error:  # of whatever kind: the schema is not ours
        raise UnusableSchemaError(f"it is not an Avro schema ({type(error).__name__}: {_short(error)})") from None


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "..."


class _Cursor:
    """A place in the bytes of a record, and how much of what it may hold was met."""

    __slots__ = ("at", "data", "depth", "left")

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at
        self.left = MOST_VALUES
        self.depth = 0

    def spend(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise UndecodableError("nested", f"the record holds more than {MOST_VALUES:,} values")

    def long(self) -> int:
        data, at = self.data, self.at
        byte = data[at]
        at += 1
        result = byte & 0x7F
        shift = 7
        while byte > 0x7F:
            byte = data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if shift > 70:
                raise _unfit("a number has more than 10 bytes")
        self.at = at
        if result >> 64:
            raise _unfit("a number has more than 64 bits")
        return (result >> 1) ^ -(result & 1)

    def take(self, length: int) -> bytes:
        at = self.at
        end = at + length
        if length < 0 or end > len(self.data):
            raise _unfit(f"a value of {length:,} bytes is announced, {len(self.data) - at:,} are left")
        self.at = end
        return self.data[at:end]


Decode: TypeAlias = Callable[[_Cursor], Any]


def _unfit(what: str) -> UndecodableError:
    return UndecodableError("schema", f"the bytes do not fit their Avro schema: {what}")


class _Compiler:
    """Makes decoders of parsed schemas; a named type is compiled once, and may contain itself."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._compiled: dict[str, Decode] = {}

    def compile(self, schema: Any) -> Decode:
        if isinstance(schema, list):
            return _union([self.compile(branch) for branch in schema])
        if isinstance(schema, dict):
            return self._complex(schema)
        primitive = _PRIMITIVES.get(schema)
        return primitive or self._reference(str(schema))

    def _reference(self, name: str) -> Decode:
        if name not in self._named:
            raise UnusableSchemaError(f"it refers to {name[:100]}, which is not there")
        if name not in self._compiled:
            compiled = self._compiled
            # What is within itself finds this one, which finds the real one.
            compiled[name] = lambda cursor: compiled[name](cursor)
            compiled[name] = self._type(self._named[name])
        return self._compiled[name]

    def _complex(self, schema: dict[str, Any]) -> Decode:
        if "name" in schema and schema["name"] in self._named:
            return self._reference(schema["name"])
        return self._type(schema)

    def _type(self, schema: dict[str, Any]) -> Decode:
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.compile(kind)
        if kind in ("record", "error"):
            if not all(isinstance(field["name"], str) for field in schema["fields"]):
                raise UnusableSchemaError("a field of it has no name")
            return _record([(field["name"], self.compile(field["type"])) for field in schema["fields"]])
        if kind == "enum":
            return _enum(list(map(str, schema["symbols"])))
        if kind == "array":
            return _array(self.compile(schema["items"]))
        if kind == "map":
            return _map(self.compile(schema["values"]))
        if kind == "fixed" and (type(schema["size"]) is not int or schema["size"] < 0):
            raise UnusableSchemaError(f"the fixed type {schema['name'][:100]} has no size")
        return _logical(kind, schema) or (_fixed(schema["size"]) if kind == "fixed" else self.compile(kind))


def _logical(kind: str, schema: Mapping[str, Any]) -> Decode | None:
    """Return the decoder of a logical type; None where it is none, and is read as what it is made of."""
    name = schema.get("logicalType")
    if not isinstance(name, str):
        return None
    if kind == "int" and name == "date":
        return lambda cursor: _DAY * _int(cursor)
    divisor = _TIMES.get((kind, name))
    if divisor is not None:
        read = _PRIMITIVES[kind]
        return lambda cursor: read(cursor) / divisor
    if name == "decimal" and kind in ("bytes", "fixed"):
        scale = schema.get("scale", 0)
        if type(scale) is not int or not 0 <= scale <= 1000:
            return None
        if kind == "bytes":
            return lambda cursor: decimal_number(cursor.take(cursor.long()), scale)
        size = schema["size"]
        return lambda cursor: decimal_number(cursor.take(size), scale)
    return None


def _int(cursor: _Cursor) -> int:
    number = cursor.long()
    if not -(2**31) <= number < 2**31:
        raise _unfit(f"{number} is not an int")
    return number


def _boolean(cursor: _Cursor) -> bool:
    byte = cursor.data[cursor.at]
    if byte > 1:
        raise _unfit(f"the byte {byte:02x} is not a boolean")
    cursor.at += 1
    return byte == 1


def _float(cursor: _Cursor) -> float:
    number: float = _FLOAT.unpack(cursor.take(4))[0]
    return number


def _double(cursor: _Cursor) -> float:
    number: float = _DOUBLE.unpack(cursor.take(8))[0]
    return number


def _string(cursor: _Cursor) -> str:
    data = cursor.take(cursor.long())
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UndecodableError("encoding", f"byte {data[error.start]:#04x} of a string is not UTF-8") from None


_PRIMITIVES: dict[Any, Decode] = {
    "null": lambda _: None,
    "boolean": _boolean,
    "int": _int,
    "long": _Cursor.long,
    "float": _float,
    "double": _double,
    "bytes": lambda cursor: base64_text(cursor.take(cursor.long())),
    "string": _string,
}


def _fixed(size: int) -> Decode:
    return lambda cursor: base64_text(cursor.take(size))


def _enum(symbols: list[str]) -> Decode:
    def decode(cursor: _Cursor) -> str:
        index = cursor.long()
        if not 0 <= index < len(symbols):
            raise _unfit(f"an enum has no symbol {index}")
        return symbols[index]

    return decode


def _union(branches: list[Decode]) -> Decode:
    def decode(cursor: _Cursor) -> Any:
        index = cursor.long()
        if not 0 <= index < len(branches):
            raise _unfit(f"a union has no branch {index}")
        return branches[index](cursor)

    return decode


def _record(fields: list[tuple[str, Decode]]) -> Decode:
    count = len(fields) + 1

    def decode(cursor: _Cursor) -> dict[str, Any]:
        cursor.spend(count)
        cursor.depth += 1
        if cursor.depth > DEEPEST_RECORD:
            raise UndecodableError("nested", f"records are nested more than {DEEPEST_RECORD} levels deep")
        values = {name: read(cursor) for name, read in fields}
        cursor.depth -= 1
        return values

    return decode


def _array(item: Decode) -> Decode:
    def decode(cursor: _Cursor) -> list[Any]:
        items: list[Any] = []
        while count := _block(cursor):
            items += [item(cursor) for _ in range(count)]
        return items

    return decode


def _map(value: Decode) -> Decode:
    def decode(cursor: _Cursor) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while count := _block(cursor):
            for _ in range(count):
                name = _string(cursor)
                items[name] = value(cursor)
        return items

    return decode


def _block(cursor: _Cursor) -> int:
    """Return how many items follow; 0 at the end."""
    count = cursor.long()
    if count < 0:
        cursor.long()  # how many bytes they take, for who passes over them
        count = -count
    cursor.spend(count)
    return count
