"""Names of columns and targets in a configuration, each in its one normal form."""

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticKnownError

from streamkernel.connectors.names import nfc

__all__ = ["ColumnName", "TargetNames"]

ColumnName: TypeAlias = Annotated[str, AfterValidator(nfc)]


def _targets(value: Any) -> Any:
    if value is None:
        return None
    names = value if isinstance(value, list) else [value]
    if not all(isinstance(name, str) for name in names):
        raise PydanticKnownError("string_type")
    if not names:
        raise ValueError("must name a column, got an empty list")
    names = list(map(nfc, names))
    if len(set(names)) < len(names):
        raise ValueError("must name each column once")
    return names if isinstance(value, list) else names[0]


_TARGETS_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "minItems": 1, "items": {"type": "string"}},
        {"type": "null"},
    ]
}
TargetNames: TypeAlias = Annotated[Any, AfterValidator(_targets), WithJsonSchema(_TARGETS_SCHEMA)]
"""The column of the target, a list of several, or None."""
