"""Makes what decodes the values of a topic: JSON objects, or what a schema registry has the schema of."""

from __future__ import annotations

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.registry.lookup import RegistryLookup
from streamkernel.connectors.registry.objects import FramedObjects, PayloadDecoder, check_format, decoder_lookup
from streamkernel.connectors.registry.settings import RegistrySettings, ValueFormat
from streamkernel.connectors.target_columns import Target

__all__ = ["value_decoder"]


def value_decoder(
    target: Target,
    target_type: str,
    max_string: int,
    inputs: InputSettings | None,
    value_format: ValueFormat,
    registry: RegistrySettings | None,
    place: str,
) -> tuple[JsonObjects, RegistryLookup[int, PayloadDecoder] | None]:
    """Return the decoder of the values, and what finds the schemas it needs; None where it needs none.

    Raises `ValueError` for an unknown `target_type`, and for a `registry` that does not go with the `value_format`.
    `place` names the topic in messages; the others are those of `KafkaSource`.
    """
    rules = None if inputs is None else ColumnRules(inputs, max_string)
    values = JsonObjects(target, target_type, max_string, rules)
    if value_format == "json":
        return values, None
    registry = check_format(value_format, registry)
    schemas = decoder_lookup(value_format, registry, place)
    bears_unknown = registry.on_unknown_schema == "dead_letter"
    return FramedObjects(target, target_type, max_string, schemas, bears_unknown, rules), schemas
