"""The decoders of a topic's values, by the schemas of a registry."""

from __future__ import annotations

from streamkernel.connectors.ports import ConnectorError, SettingError
from streamkernel.connectors.registry.avro import AvroDecoder, import_fastavro
from streamkernel.connectors.registry.client import RegistryClient, UnusableSchemaError
from streamkernel.connectors.registry.descriptors import descriptor_file, import_protobuf, registry_files
from streamkernel.connectors.registry.lookup import RegistryLookup
from streamkernel.connectors.registry.objects import JsonPayload
from streamkernel.connectors.registry.plain import PayloadDecoder
from streamkernel.connectors.registry.protobuf import ProtobufDecoder
from streamkernel.connectors.registry.settings import SCHEMA_TYPES, RegistrySettings, ValueFormat

__all__ = ["check_format", "decoder_lookup"]


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
    """Return the lookup of decoders by schema id.

    Raises `ValueError`, naming the key, for an unusable file of the settings.
    """
    client = RegistryClient(settings)
    of_file: PayloadDecoder | None = None
    if settings.descriptor_set is not None and settings.message is not None:
        of_file = ProtobufDecoder(descriptor_file(settings.descriptor_set, settings.message), settings.message)
    serialized = value_format == "protobuf" and of_file is None

    def find(number: int) -> PayloadDecoder:
        schema = client.schema(number, serialized)
        if schema.kind != SCHEMA_TYPES[value_format]:
            raise UnusableSchemaError(f"its type is {schema.kind[:100]}, and value_format is {value_format}")
        if value_format == "json_schema":
            return JsonPayload()
        if of_file is not None:
            return of_file
        schemas = client.with_references(schema, serialized)
        return (
            AvroDecoder(schemas)
            if value_format == "avro"
            else ProtobufDecoder(registry_files(schemas), settings.message)
        )

    return RegistryLookup(f"{place}, schema registry {settings.urls[0]}", find, settings.unknown_seconds)
