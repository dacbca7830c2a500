"""Decoding of records by the schemas of a registry, by the same rules as JSON objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.scanner import ColumnScanner
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import ColumnUse, ConnectorError, SettingError
from streamkernel.connectors.registry.avro import avro_decoder, import_fastavro
from streamkernel.connectors.registry.client import RegistryClient, UnusableSchemaError
from streamkernel.connectors.registry.framing import HEAD_BYTES, schema_number
from streamkernel.connectors.registry.lookup import FailedLookupError, RegistryLookup
from streamkernel.connectors.registry.protobuf import ProtobufDecoder, descriptor_file, import_protobuf, registry_types
from streamkernel.connectors.registry.settings import SCHEMA_TYPES, RegistrySettings, ValueFormat
from streamkernel.connectors.target_columns import Target

__all__ = ["FramedObjects", "PayloadDecoder", "check_format", "decode_json", "decoder_lookup"]


PayloadDecoder: TypeAlias = Callable[[bytes], Any]
"""Returns a whole value of one schema, with its frame, as JSON would have it.

It raises `UndecodableError` if the bytes do not fit the schema.
"""

_JSON = JsonObjects(None, "str", 1)


def decode_json(value: bytes) -> Any:
    """Return a value of a JSON Schema: JSON after the schema's id. The schema itself is not used."""
    return _JSON.load(value[HEAD_BYTES:])


class FramedObjects(JsonObjects):
    """A decoder of values in the wire format of schema registries.

    A record, message or object becomes inputs and a target like a JSON object of the same content.

    Parameters
    ----------
    target, target_type, max_string
        As for `streamkernel.connectors.objects.JsonObjects`.
    schemas
        Finds the decoder of a schema by its id.
    bears_unknown
        Whether a value with an unknown or unusable schema is undecodable; otherwise it ends the source.
    rules
        The rules of the columns; None: all are inputs, each as it is.

    """

    def __init__(
        self,
        target: Target,
        target_type: str,
        max_string: int,
        schemas: RegistryLookup[int, PayloadDecoder],
        bears_unknown: bool = False,
        rules: ColumnRules | None = None,
    ) -> None:
        super().__init__(target, target_type, max_string, rules)
        self._schemas = schemas
        self._bears_unknown = bears_unknown
        # The decoders of the current batch: the cache may drop some of them.
        self._decoders: dict[bytes, PayloadDecoder | UndecodableError] = {}

    @cached_property
    def scanner(self) -> ColumnScanner | None:
        return None  # the bytes are those of a schema

    def ready(self, raws: Sequence[bytes | None]) -> int:
        """Return how many of the first of `raws` have a known schema, and start to look up the next one.

        Raises
        ------
        ConnectorError
            If the first one will never have one: the registry refuses, or does not know its schema.

        """
        before, self._decoders = self._decoders, {}
        for place, raw in enumerate(raws):
            head = (raw or b"")[:HEAD_BYTES]
            if not head or head in self._decoders:
                continue
            try:
                found = before.get(head) or self._find(head)
            except ConnectorError:
                if place == 0:
                    raise
                return place
            if found is None:
                return place
            self._decoders[head] = found
        return len(raws)

    def _find(self, head: bytes) -> PayloadDecoder | UndecodableError | None:
        try:
            return self._schemas.get(schema_number(head))
        except UndecodableError as error:
            return error
        except FailedLookupError as error:
            if error.final:
                raise ConnectorError(str(error)) from None
            if not self._bears_unknown:
                raise ConnectorError(
                    f"{error}; to continue without such records, set schema_registry.on_unknown_schema: dead_letter"
                ) from None
            return UndecodableError("schema", str(error))

    def columns(self, raw: bytes) -> list[ColumnUse]:
        """Return the use of each column of a record; none if its schema is no longer at hand."""
        return super().columns(raw) if raw[:HEAD_BYTES] in self._decoders else []

    def load(self, raw: bytes) -> Any:
        """Return the value of a record, after `ready` has found its schema."""
        decoder = self._decoders[raw[:HEAD_BYTES]]
        if isinstance(decoder, UndecodableError):
            raise UndecodableError(*decoder.fault)
        try:
            return decoder(raw)
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            # An odd schema must not stop the daemon at the same record at each start.
            raise UndecodableError("schema", f"unexpected {type(error).__name__}: {error}"[:200]) from None

    def load_exactly(self, raw: bytes) -> Any:
        """Return the value of a record with its long integers unrounded."""
        if self._decoders.get(raw[:HEAD_BYTES]) is decode_json:
            return super().load_exactly(raw[HEAD_BYTES:])
        return self.load(raw)


def check_format(value_format: ValueFormat, settings: RegistrySettings | None) -> RegistrySettings:
    """Return the settings of a format's registry.

    Raises `ValueError` for missing settings, those of another format, and a missing library.
    """
    if value_format not in SCHEMA_TYPES:
        raise ValueError(f"value_format must be one of json, {', '.join(SCHEMA_TYPES)}, got {value_format!r}")
    if settings is None:
        raise SettingError("schema_registry", f"required with value_format {value_format}")
    for name in ("descriptor_set", "message"):
        if getattr(settings, name) is not None and value_format != "protobuf":
            raise SettingError(f"schema_registry.{name}", "works only with value_format protobuf")
    if settings.message is None and settings.descriptor_set is not None:
        raise SettingError("schema_registry.message", "required with schema_registry.descriptor_set")
    try:
        {"avro": import_fastavro, "protobuf": import_protobuf}.get(value_format, dict)()
    except ConnectorError as error:
        raise ValueError(str(error)) from None
    return settings


def decoder_lookup(
    value_format: ValueFormat, settings: RegistrySettings, place: str
) -> RegistryLookup[int, PayloadDecoder]:
    """Return the lookup of decoders by schema id.

    Raises `ValueError`, naming the key, for an unusable file of the settings.
    """
    client = RegistryClient(settings)
    of_file: PayloadDecoder | None = None
    if settings.descriptor_set is not None and settings.message is not None:
        types = descriptor_file(settings.descriptor_set, settings.message)
        of_file = ProtobufDecoder(types, settings.message).decode

    def find(number: int) -> PayloadDecoder:
        serialized = value_format == "protobuf" and of_file is None
        schema = client.schema(number, serialized)
        if schema.kind != SCHEMA_TYPES[value_format]:
            raise UnusableSchemaError(f"its type is {schema.kind[:100]}, and value_format is {value_format}")
        if value_format == "json_schema":
            return decode_json
        if value_format == "avro":
            return avro_decoder(client.texts(schema).values())
        if of_file is not None:
            return of_file
        return ProtobufDecoder(registry_types(client.texts(schema, serialized)), settings.message).decode

    return RegistryLookup(f"{place}, schema registry {settings.urls[0]}", find, settings.unknown_seconds)
