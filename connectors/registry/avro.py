"""Avro schemas and values: fastavro parses and reads them; this module chooses the JSON form of each type."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.client import SchemaSet, UnusableSchemaError
from streamkernel.connectors.registry.framing import HEAD_BYTES
from streamkernel.connectors.registry.plain import base64_text, decimal_number

__all__ = ["AvroDecoder", "import_fastavro", "parse_avro"]

# Logical types become seconds: of an instant since 1970, of a time since midnight.
_PER_SECOND: Mapping[tuple[str, str], int] = {
    ("long", "timestamp-millis"): 1000,
    ("long", "timestamp-micros"): 1_000_000,
    ("long", "timestamp-nanos"): 1_000_000_000,
    ("long", "local-timestamp-millis"): 1000,
    ("long", "local-timestamp-micros"): 1_000_000,
    ("long", "local-timestamp-nanos"): 1_000_000_000,
    ("int", "time-millis"): 1000,
    ("long", "time-micros"): 1_000_000,
}
# Custom logical types of fastavro, with a reader each.
_READERS = {
    "streamkernel-date": lambda days, *_: 86_400 * days,
    "streamkernel-seconds": lambda ticks, schema, *_: ticks / schema["unit"],
    "streamkernel-decimal": lambda data, schema, *_: decimal_number(data, schema["scale"]),
    "streamkernel-base64": lambda data, *_: base64_text(data),
}
_LARGEST_SCALE = 1000


class AvroDecoder:
    """A decoder of the values of one Avro schema, in the wire format of schema registries.

    Times become seconds, decimals numbers, enums their symbols, and bytes base64. A union becomes its branch's value.
    Raises `UnusableSchemaError` for an invalid schema.
    """

    def __init__(self, schemas: SchemaSet) -> None:
        fastavro = import_fastavro()
        named: dict[str, Any] = {}
        forms = _JsonForms()
        plain = [forms.of(_parse(text, named), ()) for text in schemas.texts]
        ours: dict[str, Any] = {}
        self._schema = [fastavro.parse_schema(one, ours) for one in plain][-1]
        # The compiled reader recurses without a limit: with a type that contains itself, few bytes end the process.
        module = fastavro._read_py if forms.recursive else fastavro.read._read
        for kind in ("int", "long", "bytes", "fixed"):
            module.LOGICAL_READERS.update({f"{kind}-{name}": read for name, read in _READERS.items()})
        self._read = module.schemaless_reader

    def decode(self, value: bytes) -> Any:
        """Return a value as JSON would have it; see `PayloadDecoder.decode`."""
        payload = io.BytesIO(value)
        payload.seek(HEAD_BYTES)
        try:
            decoded = self._read(payload, self._schema, None)
        except RecursionError:
            raise UndecodableError("nested", "the record is nested too deeply") from None
        except UnicodeDecodeError as error:
            raise UndecodableError("encoding", f"a string is not UTF-8: {error.reason}") from None
        except Exception as error:  # fastavro raises many kinds for bytes that do not fit
            words = f"{type(error).__name__}: {error}"[:100]
            raise UndecodableError("schema", f"the bytes do not fit their Avro schema ({words})") from None
        if payload.tell() != len(value):
            left = len(value) - payload.tell()
            raise UndecodableError("schema", f"the bytes do not fit their Avro schema: {left:,} bytes are left over")
        return decoded


def import_fastavro() -> Any:
    """Return the package fastavro; raises `ConnectorError` if it is not installed."""
    try:
        import fastavro
        import fastavro._read_py
    except ImportError:
        raise ConnectorError("value_format avro needs fastavro: pip install 'streamkernel[registry]'") from None
    return fastavro


def parse_avro(schemas: SchemaSet) -> Any:
    """Return a schema as fastavro parses it, with the schemas it refers to."""
    named: dict[str, Any] = {}
    return [_parse(text, named) for text in schemas.texts][-1]


def _parse(text: str, named: dict[str, Any]) -> Any:
    # Some producers register a primitive type as a bare word.
    bare = text.strip()
    try:
        return import_fastavro().parse_schema(bare if bare.isalpha() else orjson.loads(text), named)
    except Exception as error:  # fastavro raises many kinds for a schema that is none
        words = " ".join(str(error).split())[:200]
        raise UnusableSchemaError(f"it is not an Avro schema ({type(error).__name__}: {words})") from None


class _JsonForms:
    """A converter of parsed schemas: it replaces logical types and bytes by those that read as JSON has them.

    Attributes
    ----------
    recursive
        Whether a type contains itself.

    """

    def __init__(self) -> None:
        self.recursive = False
        self._empty: dict[str, bool] = {}

    def of(self, schema: Any, within: Sequence[str]) -> Any:
        """Return a schema's converted form; `within` names the records around it."""
        if isinstance(schema, list):
            return [self.of(branch, within) for branch in schema]
        if not isinstance(schema, dict):
            self.recursive |= schema in within
            return {"type": "bytes", "logicalType": "streamkernel-base64"} if schema == "bytes" else schema
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, within)
        if kind == "enum":
            self._empty[schema["name"]] = False
            return {"type": kind, "name": schema["name"], "symbols": schema["symbols"]}
        if kind == "map":
            return {"type": kind, "values": self.of(schema["values"], within)}
        if kind == "array":
            items = self.of(schema["items"], within)
            if self._is_empty(items):
                raise UnusableSchemaError("an array of it has items without any bytes")
            return {"type": kind, "items": items}
        if kind == "fixed":
            if not isinstance(schema["size"], int) or schema["size"] < 0:
                raise UnusableSchemaError(f"the size of the fixed type {schema['name'][:100]} is not a whole number")
            self._empty[schema["name"]] = schema["size"] == 0
            return {"type": kind, "name": schema["name"], "size": schema["size"], **_logical(kind, schema)}
        return {"type": kind, **_logical(kind, schema)} if isinstance(kind, str) else self.of(kind, within)

    def _record(self, schema: Mapping[str, Any], within: Sequence[str]) -> dict[str, Any]:
        name = schema["name"]
        fields = [
            {"name": str(field["name"]), "type": self.of(field["type"], (*within, name))} for field in schema["fields"]
        ]
        self._empty[name] = all(self._is_empty(field["type"]) for field in fields)
        return {"type": "record", "name": name, "fields": fields}

    def _is_empty(self, schema: Any) -> bool:
        """Whether a value takes no bytes: an array's count could then announce billions of them."""
        if isinstance(schema, list):
            return False
        name = str(schema.get("name", schema["type"]) if isinstance(schema, dict) else schema)
        return name == "null" or self._empty.get(name, False)


def _logical(kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    name, scale = schema.get("logicalType"), schema.get("scale", 0)
    if not isinstance(name, str):
        name = ""
    if (kind, name) == ("int", "date"):
        return {"logicalType": "streamkernel-date"}
    if (kind, name) in _PER_SECOND:
        return {"logicalType": "streamkernel-seconds", "unit": _PER_SECOND[kind, name]}
    if kind not in ("bytes", "fixed"):
        return {}
    if name == "decimal" and type(scale) is int and 0 <= scale <= _LARGEST_SCALE:
        return {"logicalType": "streamkernel-decimal", "scale": scale}
    return {"logicalType": "streamkernel-base64"}
