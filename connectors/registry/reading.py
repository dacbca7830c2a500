"""Makes what reads the values of a topic by the schemas of a registry."""

from __future__ import annotations

from collections.abc import Callable

from streamkernel.connectors.ports import ConnectorError, SettingError
from streamkernel.connectors.registry.avro import AvroDecoder, import_fastavro
from streamkernel.connectors.registry.client import RegisteredSchema, RegistryClient
from streamkernel.connectors.registry.descriptors import descriptor_file, import_protobuf, registry_files
from streamkernel.connectors.registry.lookup import RegistryLookup
from streamkernel.connectors.registry.objects import JsonPayload
from streamkernel.connectors.registry.plain import PayloadDecoder
from streamkernel.connectors.registry.protobuf import ProtobufDecoder
from streamkernel.connectors.registry.schemas import UnusableSchemaError, fetch
from streamkernel.connectors.registry.settings import SCHEMA_TYPES, RegistrySettings, ValueFormat

__all__ = ["check_format", "decoder_lookup"]


def check_format(value_format: ValueFormat, settings: RegistrySettings | None) -> RegistrySettings:
    """Return the settings of a format's registry.

    Raises `ValueError` where there are none, or they do not go with the format, and where its library is missing.
    """
    if value_format not in SCHEMA_TYPES:
        raise ValueError(f"value_format must be one of json, {', '.join(SCHEMA_TYPES)}, got {value_format!r}")
    if settings is None:
        raise SettingError("schema_registry", f"required with value_format {value_format}")
    if settings.descriptor_set is not None and value_format != "protobuf":
        raise SettingError("schema_registry.descriptor_set", "works only with value_format protobuf")
    if settings.message is not None and value_format != "protobuf":
        raise SettingError("schema_registry.message", "works only with value_format protobuf")
    if settings.message is None and settings.descriptor_set is not None:
        raise SettingError("schema_registry.message", "required with schema_registry.descriptor_set")
    try:
        if value_format == "avro":
            import_fastavro()
        elif value_format == "protobuf":
            import_protobuf()
    except ConnectorError as error:
        raise ValueError(str(error)) from None
    return settings


def decoder_lookup(
    value_format: ValueFormat, settings: RegistrySettings, place: str
) -> RegistryLookup[int, PayloadDecoder]:
    """Return what finds the decoder of a schema by its id.

    Raises `ValueError`, naming the key, for a file of the settings that cannot be used.
    """
    client = RegistryClient(settings)
    decode = _maker(value_format, settings, client)

    def find(number: int) -> PayloadDecoder:
        return decode(client.schema(number, serialized=value_format == "protobuf" and settings.descriptor_set is None))

    return RegistryLookup(f"{place}, schema registry {settings.urls[0]}", find, settings.unknown_seconds)


def _maker(
    value_format: ValueFormat, settings: RegistrySettings, client: RegistryClient
) -> Callable[[RegisteredSchema], PayloadDecoder]:
    """Return what makes a decoder of a registered schema."""
    wanted = SCHEMA_TYPES[value_format]

    def checked(make: Callable[[RegisteredSchema], PayloadDecoder]) -> Callable[[RegisteredSchema], PayloadDecoder]:
        def of(schema: RegisteredSchema) -> PayloadDecoder:
            if schema.kind != wanted:
                raise UnusableSchemaError(f"its type is {schema.kind[:100]}, and value_format is {value_format}")
            return make(schema)

        return of

    if value_format == "avro":
        return checked(lambda schema: AvroDecoder(fetch(client, schema)))
    if value_format == "json_schema":
        return checked(lambda schema: JsonPayload(len(schema.text)))
    if settings.descriptor_set is None or settings.message is None:
        return checked(lambda schema: _of_registry(client, schema, settings.message))
    decoder = ProtobufDecoder(descriptor_file(settings.descriptor_set, settings.message), 0, settings.message)
    return checked(lambda _: decoder)


def _of_registry(client: RegistryClient, schema: RegisteredSchema, message: str | None) -> ProtobufDecoder:
    schemas = fetch(client, schema, serialized=True)
    return ProtobufDecoder(registry_files(schemas), schemas.size, message)
