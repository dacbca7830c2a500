"""Decoding of records by the schemas of a registry, by the same rules as JSON objects."""

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
    """A decoder of the values of a JSON Schema: JSON after the schema's id. The schema itself is not used."""

    def __init__(self) -> None:
        self._objects = JsonObjects(None, "str", 1)

    def decode(self, value: bytes) -> Any:
        """Return a value; see `PayloadDecoder.decode`."""
        return self._objects.load(value[HEAD_BYTES:])


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

    def ready(self, raws: Sequence[bytes | None]) -> int:
        """Return how many of the first of `raws` have a known schema, and start to look up the next one.

        Raises
        ------
        ConnectorError
            If the first one will never have one: the registry refuses, or does not know its schema.

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
        decoder = self._decoders.get(raw[:HEAD_BYTES])
        if isinstance(decoder, UndecodableError):
            raise UndecodableError(*decoder.fault)
        assert decoder is not None, "a value is decoded before its schema is known"
        try:
            return decoder.decode(raw)
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            # An odd schema must not stop the daemon at the same record at each start.
            raise UndecodableError("schema", f"unexpected {type(error).__name__}: {error}"[:200]) from None

    def load_exactly(self, raw: bytes) -> Any:
        """Return the value of a record with its long integers unrounded."""
        if isinstance(self._decoders.get(raw[:HEAD_BYTES]), JsonPayload):
            return super().load_exactly(raw[HEAD_BYTES:])
        return self.load(raw)

    def load_all(self, raws: Sequence[bytes]) -> list[Any]:
        """Return the values of records; None for those to decode one at a time."""
        return [self._plain_or_none(raw) for raw in raws]

    def _plain_or_none(self, raw: bytes) -> Any:
        try:
            value = self.load(raw) if raw else None
        except UndecodableError:
            return None
        return value if self._is_finite(value) else None

    def _is_finite(self, value: Any) -> bool:
        """Whether no number is infinite or NaN; nested ones count only if rules may flatten them."""
        inner: Iterable[Any] = value.values() if type(value) is dict else value if type(value) is list else ()
        return all(
            math.isfinite(one) if type(one) is float else not self.rules.may_unnest or self._is_finite(one)
            for one in inner
        )
