"""Encodes lines of output by a schema of a registry: one that is made for them, or the latest of the subject."""

from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from streamkernel.connectors.encode import to_json
from streamkernel.connectors.ports import SinkError
from streamkernel.connectors.registry.avro import import_fastavro, parse_avro
from streamkernel.connectors.registry.client import RegisteredSchema, RegistryClient, UnknownSchemaError
from streamkernel.connectors.registry.descriptors import FileSet, descriptor_file, import_protobuf, registry_files
from streamkernel.connectors.registry.framing import frame, varint_indexes
from streamkernel.connectors.registry.line_schema import REST, LineSchema, Scalar, file_descriptor, schema_text
from streamkernel.connectors.registry.lookup import FailedLookupError, RegistryLookup
from streamkernel.connectors.registry.schemas import SchemaSet, UnusableSchemaError, fetch
from streamkernel.connectors.registry.settings import SCHEMA_TYPES, RegistrySettings, ValueFormat

__all__ = ["LineEncoder"]

_log = logging.getLogger(__name__)

# What Avro and Protobuf have integers of.
_LEAST, _MOST = -(2**63), 2**63 - 1

Line: TypeAlias = Mapping[str, Any]
Encode: TypeAlias = Callable[[Line], bytes]


class _Encoding(NamedTuple):
    """What stands before a line, and how it is encoded."""

    head: bytes
    encode: Encode
    size: int


class LineEncoder:
    """Encodes lines of output in the wire format of schema registries, once the registry has answered.

    Parameters
    ----------
    value_format, settings
        The format, and the registry with how its schema is chosen.
    topic
        Names the subject where the settings do not.
    schema
        The schema of the lines, which is registered unless the latest of the subject is taken.
    place
        What a log line begins with.

    Raises
    ------
    ValueError
        For a file of the settings that cannot be used.

    """

    def __init__(
        self, value_format: ValueFormat, settings: RegistrySettings, topic: str, schema: LineSchema, place: str
    ) -> None:
        self.subject = settings.subject or f"{topic}-value"
        self._format = value_format
        self._settings = settings
        self._schema = schema
        self._client = RegistryClient(settings)
        self._files: FileSet | None = None
        if settings.descriptor_set is not None:
            self._files = descriptor_file(settings.descriptor_set, str(settings.message))
        place = f"{place}, schema registry {settings.urls[0]}"
        self._lookup: RegistryLookup[str, _Encoding] = RegistryLookup(place, self._find, settings.unknown_seconds)

    @property
    def ready(self) -> bool:
        """Whether lines can be encoded; where not, the registry is asked. Raises `SinkError` where it refuses."""
        try:
            return self._lookup.get(self.subject) is not None
        except FailedLookupError as error:
            advice = "" if error.final else "; streamkernel check says which schema that is"
            raise SinkError(f"{error}{advice}") from None

    @property
    def health_problem(self) -> str | None:
        """Why lines cannot be encoded for now."""
        return self._lookup.health_problem

    def wait(self, seconds: float) -> None:
        """Wait until the registry has answered what was asked, but no longer than some seconds."""
        self._lookup.wait(seconds)

    def encode(self, line: Line) -> bytes:
        """Return the value of a message, once it is `ready`; raises `SinkError` for a line that fits no such schema."""
        encoding = self._lookup.get(self.subject)
        assert encoding is not None
        try:
            return encoding.head + encoding.encode(line)
        except Exception as error:  # of whatever kind: the libraries have many for a value that does not fit
            text = " ".join(str(error).split())[:200]
            raise SinkError(
                f"a line does not fit the schema of the subject {self.subject} ({text}): check use_latest_version, "
                "or name another subject"
            ) from None

    def probe(self) -> str:
        """Ask the registry, changing nothing, and say in one phrase what lines would be written by.

        Raises `SinkError` where it would refuse, else as `streamkernel.connectors.registry.client.RegistryClient`.
        """
        client, own = self._client, self._own()
        where = f"the subject {self.subject} of the schema registry {client.probe()}"
        known = client.known(self.subject)
        if self._settings.use_latest_version:
            if known is None:
                raise SinkError(f"{where} has no schema: register one, or leave out use_latest_version")
            return f"by {where}, version {known}"
        if not self._settings.auto_register_schemas:
            try:
                client.registered(self.subject, own)
            except UnknownSchemaError:
                raise SinkError(f"{where} lacks the schema of the lines: register this one: {own.text}") from None
            return f"by {where}"
        if known is not None and not client.compatible(self.subject, own):
            raise SinkError(
                f"{where} has a schema, version {known}, that the one of the lines is not compatible with: name "
                "another subject, or set use_latest_version"
            )
        return f"by {where}, {'new' if known is None else f'version {known} or a new one'}"

    def close(self) -> None:
        """End the thread that asks."""
        self._lookup.close()

    def _own(self) -> RegisteredSchema:
        return RegisteredSchema(SCHEMA_TYPES[self._format], schema_text(self._schema, self._format))

    def _find(self, subject: str) -> _Encoding:
        """Ask for the schema, on the thread."""
        if self._settings.use_latest_version:
            return self._latest(subject)
        own = self._own()
        ask = self._client.register if self._settings.auto_register_schemas else self._client.registered
        head = frame(ask(subject, own))
        if self._format == "json_schema":
            return _Encoding(head, to_json, len(own.text))
        if self._format == "avro":
            encode = _avro(SchemaSet(own, {}), lambda line: _fitted(line, self._schema))
            return _Encoding(head, encode, len(own.text))
        descriptor = file_descriptor(self._schema)
        files = FileSet([descriptor], descriptor.name)
        make = files.message_class(str(files.name((0,))))
        return _Encoding(head + varint_indexes([0]), lambda line: _message(line, self._schema, make), len(own.text))

    def _latest(self, subject: str) -> _Encoding:
        serialized = self._format == "protobuf" and self._files is None
        found = self._client.version(subject, "latest", serialized)
        if found.kind != SCHEMA_TYPES[self._format]:
            raise UnusableSchemaError(f"its type is {found.kind[:100]}, and value_format is {self._format}")
        head = frame(found.number)
        if self._format == "json_schema":
            return _Encoding(head, to_json, len(found.text))
        schemas = fetch(self._client, found, serialized)
        if self._format == "avro":
            return _Encoding(head, _avro(schemas, _plain), schemas.size)
        files = self._files or registry_files(schemas)
        indexes = files.indexes(self._settings.message)
        make = files.message_class(str(files.name(indexes)))
        return _Encoding(head + varint_indexes(indexes), lambda line: _parsed_message(line, make), schemas.size)


def _plain(line: Line) -> dict[str, Any]:
    """Return a line as its JSON has it, integers exactly."""
    values: dict[str, Any] = json.loads(to_json(line))
    return values


def _avro(schemas: SchemaSet, fit: Callable[[Line], dict[str, Any]]) -> Encode:
    write = import_fastavro().schemaless_writer
    parsed, _ = parse_avro(schemas)

    def encode(line: Line) -> bytes:
        out = io.BytesIO()
        write(out, parsed, fit(line))
        return out.getvalue()

    return encode


def _parsed_message(line: Line, make: Any) -> bytes:
    message = make()
    import_protobuf().json_format.ParseDict(_plain(line), message, ignore_unknown_fields=True)
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def _message(line: Line, schema: LineSchema, make: Any) -> bytes:
    message = make()
    _fill(message, _fitted(line, schema))
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def _fill(message: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            below = getattr(message, name)
            if hasattr(below, "update"):
                below.update(value)
            else:
                _fill(below, value)
        elif value is not None:
            setattr(message, name, value)


def _fitted(line: Line, schema: LineSchema) -> dict[str, Any]:
    """Return a line with the types of its schema, and what that does not name as texts."""
    values = _plain(line)
    fields = (*schema.fields, *schema.added)
    fitted = {field.name: _typed(values.pop(field.name, None), field.holds) for field in fields}
    rest = {name: _text(value) for name, value in values.items() if value is not None}
    return {**fitted, REST: rest}


def _typed(value: Any, holds: Scalar | LineSchema) -> Any:
    if value is None:
        return None
    if isinstance(holds, LineSchema):
        return {field.name: _typed(value.get(field.name), field.holds) for field in holds.fields}
    if holds == "integer" and not _LEAST <= value <= _MOST:
        _tell_of_integers()
        return None
    if holds == "number":
        return float(value)
    if holds == "numbers":
        # What was NaN is null in JSON.
        return {name: math.nan if one is None else float(one) for name, one in value.items()}
    if holds == "texts":
        return {name: _text(one) for name, one in value.items()}
    return _text(value) if holds == "text" else value


@cache
def _tell_of_integers() -> None:
    _log.warning("integers of more than 64 bits have no place in a line by a schema: they are null there")


def _text(value: Any) -> str:
    """Return text as it is, anything else as JSON."""
    return value if isinstance(value, str) else to_json(value).decode()
