"""Types of the fields in a configuration, names of columns among them, and the base class of its sections."""

from __future__ import annotations

from collections.abc import Callable
from os.path import expanduser
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticKnownError

from streamkernel.connectors.names import nfc
from streamkernel.daemon.config.problems import shown

__all__ = [
    "ColumnName",
    "Host",
    "Name",
    "Number",
    "Path",
    "Paths",
    "Positive",
    "Section",
    "TargetNames",
    "TargetType",
    "Whole",
    "must",
    "resolvable",
]


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):  # pydantic reads true as 1
        raise ValueError("must be a number, got " + str(value).lower())
    return value


def _no_null(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain a null character")
    return value


def must(what: str, holds: Callable[[Any], object], got: bool = True) -> AfterValidator:
    """Return a validator that says what a value must be or have; the error shows the value, unless `got` is False."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(f"must {what}, got {shown(value)}" if got else f"must {what}")
        return value

    return AfterValidator(check)


def resolvable(host: str) -> str:
    """Return a host as it is; ValueError where it is neither an address nor a name that could be resolved."""
    try:
        host.encode("idna")
    except UnicodeError:
        raise ValueError(f"must be the name of a host or an address, got {shown(host)}") from None
    return host


Whole: TypeAlias = Annotated[int, BeforeValidator(_no_boolean)]
Number: TypeAlias = Annotated[float, BeforeValidator(_no_boolean)]
Positive: TypeAlias = Annotated[Whole, Field(gt=0)]
Name: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_no_null)]
Path: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_no_null), AfterValidator(expanduser)]
Host: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(resolvable)]
TargetType: TypeAlias = Literal["str", "int", "bool", "float"]


def _paths(value: Any) -> Any:
    several = value if isinstance(value, list) else [value]
    for one in several:
        if not isinstance(one, str):
            raise PydanticKnownError("string_type")
        _no_null(one)
    if not all(several) or not several:
        raise PydanticKnownError("string_too_short", {"min_length": 1})
    return list(map(expanduser, value)) if isinstance(value, list) else expanduser(value)


_PATHS_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
    ]
}
Paths: TypeAlias = Annotated[Any, AfterValidator(_paths), WithJsonSchema(_PATHS_SCHEMA)]
"""A path, or a list of paths and patterns."""

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


class Section(BaseModel):
    """A mapping of a configuration: no other keys than it names, and no change once it is read."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True, defer_build=True
    )
