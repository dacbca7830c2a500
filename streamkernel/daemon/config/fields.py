"""Types of the fields in a configuration, and the base class of its sections."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

__all__ = ["Number", "Path", "Positive", "Section", "TargetType", "Whole"]


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):  # pydantic reads true as 1
        raise ValueError("must be a number, got " + str(value).lower())
    return value


def _no_null(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold a null character")
    return value


Whole: TypeAlias = Annotated[int, BeforeValidator(_no_boolean)]
Number: TypeAlias = Annotated[float, BeforeValidator(_no_boolean)]
Positive: TypeAlias = Annotated[Whole, Field(gt=0)]
Path: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_no_null)]
TargetType: TypeAlias = Literal["str", "int", "bool", "float"]


class Section(BaseModel):
    """A mapping of a configuration: no other keys than it names, and no change once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)
