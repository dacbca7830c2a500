"""The section of a source that says which of its columns are inputs, and how each is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from streamkernel.connectors.columns.dates import check_format, zone_of
from streamkernel.connectors.columns.settings import ColumnSettings, ColumnType, DatePart, InputSettings, Nested
from streamkernel.connectors.names import hint
from streamkernel.daemon.config.fields import ColumnName, Positive, Section, must
from streamkernel.daemon.config.problems import Problem, shown

__all__ = ["ColumnConfig", "InputsConfig", "input_problems"]

# The types that a setting has a meaning for.
_ONLY_WITH = {
    "format": ("date",),
    "parts": ("date",),
    "cyclic": ("date",),
    "timezone": ("date",),
    "buckets": ("hash",),
    "invalid": ("number", "date"),
    "decimal": ("number",),
    "thousands": ("number",),
}
_OF_NUMBERS = frozenset('0123456789+-eE"')


def _spelling(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"must be text, and YAML reads this one as {str(value).lower()}: put it in quotes")
    return str(value) if isinstance(value, int | float) else value


def _spelled_out(value: Any) -> Any:
    """A type alone is written as a word."""
    if not isinstance(value, str):
        return value
    types = get_args(ColumnType)
    if value not in types:
        raise ValueError(f"must be one of {', '.join(types)}, got {shown(value)}{hint(value, list(types))}")
    return {"type": value}


def _format(text: str) -> str:
    check_format(text)
    return text


def _zone(name: str) -> str:
    zone_of(name)
    return name


_each_once = must("name each only once", lambda values: len(set(values)) == len(values), got=False)
_separator = must(
    "be one character that is not part of a number",
    lambda text: len(text) == 1 and text not in _OF_NUMBERS and not text.isalnum(),
)
# Also an empty one: the first column of a table that pandas wrote with its index.
_Names = Annotated[list[ColumnName], _each_once]
_Decimal = Literal[".", ","]
_Thousands = Annotated[str, _separator]
_Spellings = list[Annotated[str, BeforeValidator(_spelling)]]


def _differ(decimal: str | None, thousands: str | None) -> None:
    if thousands == (decimal or "."):
        raise ValueError(f"decimal and thousands must differ, both are {shown(thousands)}: set the other one, too")


class ColumnConfig(Section):
    """How to read one column. A single word is its type."""

    type: ColumnType = Field(
        default="auto",
        description="A value of type auto is a number if it reads as one in CSV, or is one in JSON. With string, "
        "each text is a category. A date becomes calendar features, and hash puts each text into one of several "
        "buckets.",
    )
    na: _Spellings | None = Field(
        default=None, description="Spellings of a missing value. They replace the general ones."
    )
    nested: Nested | None = Field(
        default=None, description="As for all columns, for the values nested under this name."
    )
    invalid: Literal["dead_letter", "missing"] = Field(
        default="dead_letter",
        description="What to do with a value that is not a number or date: make its record a dead letter, or treat "
        "it as missing.",
    )
    format: Annotated[str, AfterValidator(_format)] = Field(
        default="iso", description="For a date: iso, unix or unix_ms (since 1970), or a format such as %d.%m.%Y %H:%M."
    )
    parts: Annotated[list[DatePart], Field(min_length=1), _each_once] = Field(
        default=["year", "month", "day", "weekday", "hour"], description="For a date: the inputs it becomes."
    )
    cyclic: bool = Field(
        default=True, description="For a date: each cyclic part becomes a sine and a cosine instead of a number."
    )
    timezone: Annotated[str, AfterValidator(_zone)] | None = Field(
        default=None,
        description="For a date with a time zone: the zone to compute its parts in, such as Europe/Berlin.",
    )
    buckets: Annotated[Positive, Field(le=1_000_000)] = Field(
        default=64, description="For a hash: the number of buckets."
    )
    decimal: _Decimal | None = Field(
        default=None,
        description="For a number in text: the decimal sign. Together with thousands, it replaces the general setting.",
    )
    thousands: _Thousands | None = Field(
        default=None, description="For a number in text: the optional separator between groups of three digits."
    )

    @model_validator(mode="after")
    def _have_a_meaning(self) -> Self:
        for name, types in _ONLY_WITH.items():
            if name in self.model_fields_set and self.type not in types:
                raise ValueError(f"{name} works only with type {' or '.join(types)}, this one is {self.type}")
        _differ(self.decimal, self.thousands)
        return self

    def settings(self) -> ColumnSettings:
        """Return the same as a source takes it."""
        given = dict(self)
        given["na"] = None if self.na is None else tuple(self.na)
        given["parts"] = tuple(self.parts)
        return ColumnSettings(**given)


_Column = Annotated[ColumnConfig, BeforeValidator(_spelled_out, json_schema_input_type=ColumnType | ColumnConfig)]


class InputsConfig(Section):
    """Which columns of a source are model inputs, and how to read them."""

    include: Annotated[_Names, Field(min_length=1)] | None = Field(
        default=None, description="The input columns. null: all but the target."
    )
    exclude: _Names = Field(default_factory=list, description="Columns to leave out, such as order numbers.")
    na: _Spellings = Field(
        default_factory=list,
        description="Spellings of a missing value, in addition to the empty field. -999 also covers -999.0.",
    )
    nested: Nested = Field(
        default="dead_letter",
        description="What to do with objects and lists in JSON. flatten: each inner value is an input named "
        "outer.inner.",
    )
    decimal: _Decimal | None = Field(
        default=None,
        description="The decimal sign of numbers in text. It applies to columns of type number. In CSV, it also "
        "applies to columns without a type and to a numeric target. null: a point.",
    )
    thousands: _Thousands | None = Field(
        default=None,
        description="The optional separator between groups of three digits, such as `.`, `,` or a blank. null: none, "
        "so 1.000 is the number 1.",
    )
    types: dict[ColumnName, _Column] = Field(
        default_factory=dict,
        description="For each column: auto, string, number, date, hash, or a section with options.",
    )

    @model_validator(mode="after")
    def _separators_differ(self) -> Self:
        _differ(self.decimal, self.thousands)
        return self

    def settings(self) -> InputSettings:
        """Return the same as a source takes it."""
        return InputSettings(
            include=None if self.include is None else tuple(self.include),
            exclude=tuple(self.exclude),
            na=tuple(self.na),
            nested=self.nested,
            decimal=self.decimal,
            thousands=self.thousands,
            types={name: column.settings() for name, column in self.types.items()},
        )


def input_problems(at: str, inputs: InputsConfig, targets: Sequence[str], join_key: str | None) -> Iterator[Problem]:
    """Yield a problem for each setting that another one rules out.

    Parameters
    ----------
    at, inputs
        The key of the section, and the section.
    targets
        The columns of the targets of the same source.
    join_key
        The column that joins records and late labels; None if there are none.

    """
    named = {"include": inputs.include or (), "exclude": inputs.exclude, "types": inputs.types}
    for key, names in named.items():
        for target in filter(names.__contains__, targets):
            yield Problem(f"{at}.{key}", f"must not name the target {shown(target)}, which is not an input")
    rules = inputs.settings()
    for name in inputs.types:
        if name not in targets and not rules.is_input(name):
            yield Problem(f"{at}.types.{name}", "is not an input: remove the type, or change include and exclude")
    if join_key is None:
        return
    if not rules.is_input(join_key):
        key, must = ("exclude", "must not name") if inputs.include is None else ("include", "must name")
        why = "which joins records and labels and is never an input"
        yield Problem(f"{at}.{key}", f"{must} labels.key {shown(join_key)}, {why}")
    elif join_key in inputs.types and inputs.types[join_key].type not in ("auto", "string"):
        yield Problem(f"{at}.types.{join_key}", "must be auto or string, it is labels.key")
