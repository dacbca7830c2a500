"""Decoding records that a schema registry has the schema of, by the same rules as JSON objects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import ColumnUse, ConnectorError
from streamkernel.connectors.registry.framing import HEAD_BYTES, schema_number
from streamkernel.connectors.registry.lookup import FailedLookupError, RegistryLookup
from streamkernel.connectors.registry.plain import PayloadDecoder
from streamkernel.connectors.target_columns import Target

__all__ = ["FramedObjects", "JsonPayload"]


class JsonPayload:
    """Decodes values of a JSON Schema, which are JSON after the schema's id: the schema itself is not looked at."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._objects = JsonObjects(None, "str", 1)

    def decode(self, value: bytes) -> Any:
        """Return a value; see `PayloadDecoder.decode`."""
        return self._objects.load(value[HEAD_BYTES:])


class FramedObjects(JsonObjects):
    """Decode values in the wire format of schema registries.

    A record, message or object becomes inputs and a target as a JSON object of the same content does.

    Parameters
    ----------
    target, target_type, max_string
        As those of `streamkernel.connectors.objects.JsonObjects`.
    schemas
        Finds the decoder of a schema by its id.
    bears_unknown
        Whether a value whose schema is missing, or cannot be used, is one that cannot be decoded; where not, it ends
        the source.
    rules
        How the columns are read; None: all are inputs, each as it is.

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
        # Those of the values that were asked for last: the cache may drop some of them.
        self._decoders: dict[bytes, PayloadDecoder | UndecodableError] = {}

    def ready(self, raws: Sequence[bytes | None]) -> int:
        """Return how many of the first of `raws` can be decoded, and have the schema of the next one looked up.

        Raises
        ------
        ConnectorError
            Where none can, and never will: the registry refuses, or does not know the schema of the first one.

        """
        heads = dict.fromkeys(raw[:HEAD_BYTES] for raw in raws if raw)
        known = self._decoders = {head: one for head, one in self._decoders.items() if head in heads}
        for head in heads:
            if head in known:
                continue
            first = next(index for index, raw in enumerate(raws) if raw and raw[:HEAD_BYTES] == head)
            try:
                found = self._find(head)
            except ConnectorError:
                if first == 0:
                    raise
                return first
            if found is None:
                return first
            known[head] = found
        return len(raws)

    def _find(self, head: bytes) -> PayloadDecoder | UndecodableError | None:
        try:
            number = schema_number(head)
        except UndecodableError as error:
            return error
        try:
            return self._schemas.get(number)
        except FailedLookupError as error:
            if error.final:
                raise ConnectorError(str(error)) from None
            if not self._bears_unknown:
                raise ConnectorError(
                    f"{error}; to continue without such records, set schema_registry.on_unknown_schema: dead_letter"
                ) from None
            return UndecodableError("schema", str(error))

    def columns(self, raw: bytes) -> list[ColumnUse]:
        """Return what becomes of each column of a record; nothing if its schema is not at hand any more."""
        return super().columns(raw) if raw[:HEAD_BYTES] in self._decoders else []

    def load(self, raw: bytes) -> Any:
        """Return the value of a record, for which `ready` has found the schema."""
        decoder = self._decoders.get(raw[:HEAD_BYTES])
        if isinstance(decoder, UndecodableError):
            raise UndecodableError(*decoder.fault)
        assert decoder is not None, "a value is decoded before its schema is known"
        try:
            return decoder.decode(raw)
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            # None is known, but a schema that is out for harm must not end each start at the same record.
            raise UndecodableError("schema", f"unexpected {type(error).__name__}: {error}"[:200]) from None

    def load_exactly(self, raw: bytes) -> Any:
        """Return the value of a record with its long integers as they are."""
        if isinstance(self._decoders.get(raw[:HEAD_BYTES]), JsonPayload):
            return super().load_exactly(raw[HEAD_BYTES:])
        return self.load(raw)

    def load_all(self, raws: Sequence[bytes]) -> list[Any]:
        """Return the values of records; None for those that are to be looked at by themselves."""
        return [self._plain_or_none(raw) for raw in raws]

    def _plain_or_none(self, raw: bytes) -> Any:
        if not raw:
            return None
        try:
            value = self.load(raw)
        except UndecodableError:
            return None
        return value if self._is_finite(value) else None

    def _is_finite(self, value: Any) -> bool:
        """Return whether no value is infinite or NaN, of those that are looked at: nested ones where they may be."""
        if type(value) is dict:
            inner: Iterable[Any] = value.values()
        elif type(value) is list:
            inner = value
        else:
            return True
        if not all(map(math.isfinite, filter(_is_float, inner))):
            return False
        return not self.rules.may_unnest or all(map(self._is_finite, inner))


def _is_float(value: Any) -> bool:
    return type(value) is float
