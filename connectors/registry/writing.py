"""Encoding of output lines by a schema of a registry: their own schema, or the latest of the subject."""

from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

from streamkernel.connectors.encode import to_json
from streamkernel.connectors.ports import SinkError
from streamkernel.connectors.registry.avro import import_fastavro, parse_avro
from streamkernel.connectors.registry.client import (
    RegisteredSchema,
    RegistryClient,
    UnknownSchemaError,
    UnusableSchemaError,
)
from streamkernel.connectors.registry.framing import frame
from streamkernel.connectors.registry.line_schema import REST, LineSchema, Scalar, file_descriptor, schema_text
from streamkernel.connectors.registry.lookup import FailedLookupError, RegistryLookup
from streamkernel.connectors.registry.protobuf import MessageTypes, descriptor_file, import_protobuf, registry_types
from streamkernel.connectors.registry.settings import SCHEMA_TYPES, RegistrySettings, ValueFormat

__all__ = ["LineEncoder"]

_log = logging.getLogger(__name__)

# The range of integers of Avro and Protobuf.
_LEAST, _MOST = -(2**63), 2**63 - 1

Line: TypeAlias = Mapping[str, Any]
Encode: TypeAlias = Callable[[Line], bytes]


class LineEncoder:
    """An encoder of output lines in the wire format of schema registries, ready once the registry has answered.

    Parameters
    ----------
    value_format, settings
        The format, and the registry with its choice of a schema.
    topic
        Names the subject if the settings do not.
    schema
        The schema of the lines. The encoder registers it, unless it uses the latest one of the subject.
    place
        The beginning of a log line.

    Raises
    ------
    ValueError
        For an unusable file of the settings.

    """

    def __init__(
        self, value_format: ValueFormat, settings: RegistrySettings, topic: str, schema: LineSchema, place: str
    ) -> None:
        self.subject = settings.subject or f"{topic}-value"
        self._format = value_format
        self._settings = settings
        self._schema = schema
        self._client = RegistryClient(settings)
        self._own = RegisteredSchema(SCHEMA_TYPES[value_format], schema_text(schema, value_format))
        self._types: MessageTypes | None = None
        if settings.descriptor_set is not None:
            self._types = descriptor_file(settings.descriptor_set, str(settings.message))
        place = f"{place}, schema registry {settings.urls[0]}"
        self._lookup: RegistryLookup[str, Encode] = RegistryLookup(place, self._find, settings.unknown_seconds)

    @property
    def ready(self) -> bool:
        """Whether lines can be encoded; if not, a thread asks the registry. Raises `SinkError` if it refuses."""
        try:
            return self._lookup.get(self.subject) is not None
        except FailedLookupError as error:
            advice = "" if error.final else "; streamkernel check says which schema that is"
            raise SinkError(f"{error}{advice}") from None

    @property
    def health_problem(self) -> str | None:
        """The reason why lines cannot be encoded yet."""
        return self._lookup.health_problem

    def wait(self, seconds: float) -> None:
        """Wait for the registry's answer, at most some seconds."""
        self._lookup.wait(seconds)

    def encode(self, line: Line) -> bytes:
        """Return the value of a message, once `ready`; raises `SinkError` for a line that does not fit the schema."""
        encode = self._lookup.get(self.subject)
        assert encode is not None
        try:
            return encode(line)
        except Exception as error:  # the libraries raise many kinds for a value that does not fit
            text = " ".join(str(error).split())[:200]
            raise SinkError(
                f"a line does not fit the schema of the subject {self.subject} ({text}): check use_latest_version, "
                "or name another subject"
            ) from None

    def probe(self) -> str:
        """Ask the registry, without a change, and return a phrase with the schema of the lines.

        Raises `SinkError` if the registry would refuse it, else as
        `streamkernel.connectors.registry.client.RegistryClient`.
        """
        client, own = self._client, self._own
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
                f"{where} has version {known}, and the schema of the lines is not compatible with it: name another "
                "subject, or set use_latest_version"
            )
        return f"by {where}, {'new' if known is None else f'version {known} or a new one'}"

    def close(self) -> None:
        """Stop the thread that asks the registry."""
        self._lookup.close()

    def _find(self, subject: str) -> Encode:
        """Ask for the schema, in the thread."""
        if self._settings.use_latest_version:
            return self._latest(subject)
        ask = self._client.register if self._settings.auto_register_schemas else self._client.registered
        head = frame(ask(subject, self._own))
        if self._format == "json_schema":
            return lambda line: head + to_json(line)
        if self._format == "avro":
            return _avro(head, [self._own.text], lambda line: _fitted(line, self._schema))
        descriptor = file_descriptor(self._schema)
        return _protobuf(head, MessageTypes([descriptor], descriptor.name), None, self._fitted_message)

    def _fitted_message(self, line: Line) -> dict[str, Any]:
        return _fitted(line, self._schema, "NaN")

    def _latest(self, subject: str) -> Encode:
        serialized = self._format == "protobuf" and self._types is None
        found = self._client.version(subject, "latest", serialized)
        if found.kind != SCHEMA_TYPES[self._format]:
            raise UnusableSchemaError(f"its type is {found.kind[:100]}, and value_format is {self._format}")
        head = frame(found.number)
        if self._format == "json_schema":
            return lambda line: head + to_json(line)
        if self._format == "avro":
            return _avro(head, self._client.texts(found).values(), _plain)
        types = self._types or registry_types(self._client.texts(found, serialized))
        return _protobuf(head, types, self._settings.message, _plain)


def _plain(line: Line) -> dict[str, Any]:
    """Return a line as its JSON has it, with exact integers."""
    values: dict[str, Any] = json.loads(to_json(line))
    return values


def _avro(head: bytes, texts: Iterable[str], fit: Callable[[Line], dict[str, Any]]) -> Encode:
    write = import_fastavro().schemaless_writer
    parsed, _ = parse_avro(texts)

    def encode(line: Line) -> bytes:
        out = io.BytesIO()
        write(out, parsed, fit(line))
        return head + out.getvalue()

    return encode


def _protobuf(head: bytes, types: MessageTypes, message: str | None, fit: Callable[[Line], dict[str, Any]]) -> Encode:
    parse = import_protobuf().json_format.ParseDict
    name = types.name(message)
    head, make = head + types.heads[name], types.message_class(name)

    def encode(line: Line) -> bytes:
        data: bytes = parse(fit(line), make(), ignore_unknown_fields=True).SerializeToString(deterministic=True)
        return head + data

    return encode


def _fitted(line: Line, schema: LineSchema, nan: float | str = math.nan) -> dict[str, Any]:
    """Return a line with the types of its schema, and everything else as texts."""
    values = _plain(line)
    fields = (*schema.fields, *schema.added)
    fitted = {field.name: _typed(values.pop(field.name, None), field.holds, nan) for field in fields}
    rest = {name: _text(value) for name, value in values.items() if value is not None}
    return {**fitted, REST: rest}


def _typed(value: Any, holds: Scalar | LineSchema, nan: float | str) -> Any:
    if value is None:
        return None
    if isinstance(holds, LineSchema):
        return {field.name: _typed(value.get(field.name), field.holds, nan) for field in holds.fields}
    if holds == "integer" and not _LEAST <= value <= _MOST:
        _warn_of_integers()
        return None
    if holds == "number":
        return float(value)
    if holds == "numbers":
        # JSON has null for NaN.
        return {name: nan if one is None else float(one) for name, one in value.items()}
    return _text(value) if holds == "text" else value


@cache
def _warn_of_integers() -> None:
    _log.warning("integers of more than 64 bits do not fit the schema of a line: they are null there")


def _text(value: Any) -> str:
    """Return text as it is, anything else as JSON."""
    return value if isinstance(value, str) else to_json(value).decode()
