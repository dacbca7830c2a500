"""Avro schemas and values: fastavro reads them, with logical types of ours for the JSON form of each value."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.client import UnusableSchemaError
from streamkernel.connectors.registry.framing import HEAD_BYTES, base64_text, decimal_number

__all__ = ["avro_decoder", "import_fastavro", "parse_avro"]

_SECONDS = {"millis": 1000, "micros": 1_000_000, "nanos": 1_000_000_000}


def _seconds(per_second: int) -> Callable[..., float]:
    return lambda ticks, *_: ticks / per_second


def _decimal(data: bytes, schema: Mapping[str, Any], *_: Any) -> int | float:
    return decimal_number(data, schema.get("scale", 0))


# The readers of our logical types, as fastavro keys them: ``json-`` before the name of the usual one.
_READERS: Mapping[str, Callable[..., Any]] = {
    **{f"long-json-{local}timestamp-{unit}": _seconds(n) for local in ("", "local-") for unit, n in _SECONDS.items()},
    "int-json-time-millis": _seconds(1000),
    "long-json-time-micros": _seconds(1_000_000),
    "int-json-date": lambda days, *_: 86_400 * days,
    "bytes-json-decimal": _decimal,
    "fixed-json-decimal": _decimal,
    "bytes-json-base64": lambda data, *_: base64_text(data),
    "fixed-json-base64": lambda data, *_: base64_text(data),
}


def avro_decoder(texts: Iterable[str]) -> Callable[[bytes], Any]:
    """Return the decoder of the values of one Avro schema, in the wire format of schema registries.

    Times become seconds, decimals numbers, enums their symbols, and bytes base64. A union becomes its branch's value.

    Parameters
    ----------
    texts
        The schema's text, after those of all schemas it refers to.

    Raises
    ------
    UnusableSchemaError
        For an invalid schema.

    """
    fastavro = import_fastavro()
    schema, named = parse_avro(texts)
    found = [one for part in (schema, *named.values()) for one in _types(part)]
    if any(isinstance(one, dict) and one["type"] == "array" and _is_empty(one["items"], named) for one, _ in found):
        raise UnusableSchemaError("an array of it has items without any bytes")
    # The compiled reader recurses without a limit: with a type that contains itself, few bytes end the process.
    recursive = any(isinstance(one, str) and one in within for one, within in found)
    module = fastavro._read_py if recursive else fastavro.read._read
    module.LOGICAL_READERS.update(_READERS)
    return partial(_decode, module.schemaless_reader, schema)


def _decode(read: Callable[..., Any], schema: Any, value: bytes) -> Any:
    """Return a value as JSON would have it; raise `UndecodableError` if the bytes do not fit the schema."""
    payload = io.BytesIO(value)
    payload.seek(HEAD_BYTES)
    try:
        decoded = read(payload, schema, None)
    except RecursionError:
        raise UndecodableError("nested", "the record is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise UndecodableError("encoding", f"a string is not UTF-8: {error.reason}") from None
    except Exception as error:  # fastavro raises many kinds for bytes that do not fit
        words = f"{type(error).__name__}: {error}"[:100]
        raise UndecodableError("schema", f"the bytes do not fit their Avro schema ({words})") from None
    if (left := len(value) - payload.tell()) != 0:
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


def parse_avro(texts: Iterable[str]) -> tuple[Any, Mapping[str, Any]]:
    """Return the last schema as fastavro parses it, with our logical types, and all named types.

    The schemas before are the ones it refers to.
    """
    named: dict[str, Any] = {}
    schema: Any = None
    try:
        for text in texts:
            # Some producers register a primitive type as a bare word.
            tree = text.strip() if text.strip().isalpha() else orjson.loads(text)
            schema = import_fastavro().parse_schema(_with_json_types(tree), named)
    except Exception as error:  # fastavro raises many kinds for a schema that is none
        words = " ".join(str(error).split())[:200]
        raise UnusableSchemaError(f"it is not an Avro schema ({type(error).__name__}: {words})") from None
    return schema, named


def _with_json_types(schema: Any) -> Any:
    """Return a schema with our logical types in place of the usual ones, and of bytes."""
    if isinstance(schema, list):
        return list(map(_with_json_types, schema))
    if not isinstance(schema, dict):
        return {"type": "bytes", "logicalType": "json-base64"} if schema == "bytes" else schema
    logical = f"json-{schema.get('logicalType')}"
    if f"{schema.get('type')}-{logical}" in _READERS:
        return {**schema, "logicalType": logical}
    inner = {key: _with_json_types(schema[key]) for key in ("type", "items", "values", "fields") if key in schema}
    return {**schema, **inner, "logicalType": "json-base64"}


def _types(schema: Any, within: Sequence[str] = ()) -> Iterator[tuple[Any, Sequence[str]]]:
    """Yield a type and those in it, each with the names of the types around it."""
    yield schema, within
    inner = schema if isinstance(schema, list) else []
    if isinstance(schema, dict):
        within = (*within, schema.get("name", ""))
        fields = schema.get("fields", ())
        if not all(isinstance(field["name"], str) for field in fields):  # fastavro takes any name
            raise UnusableSchemaError("a field of it has a name that is no text")
        inner = [field["type"] for field in fields]
        inner += [schema[key] for key in ("items", "values") if key in schema]
    for one in inner:
        yield from _types(one, within)


def _is_empty(schema: Any, named: Mapping[str, Any]) -> bool:
    """Whether a value takes no bytes: an array's count could then announce billions of them."""
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if not isinstance(schema, dict):
        return bool(schema == "null")
    if schema["type"] == "record":
        return all(_is_empty(field["type"], named) for field in schema["fields"])
    return schema["type"] == "null" or schema.get("size") == 0
