"""What the columns of a sample hold, and which of them is to be predicted as what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from streamkernel.connectors.columns.nested import flattened
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.names import find, hint, nfc
from streamkernel.daemon.init.marks import Marks, are_numbers
from streamkernel.daemon.init.reading import Reading, is_absent, marks_of, reading_of
from streamkernel.daemon.init.sample import Sample, SampleError

__all__ = ["SampledColumn", "Target", "describe_columns", "find_target", "sample_marks"]

_TARGET_NAMES = frozenset({"class", "label", "outcome", "response", "target", "y"})
# Whole numbers with more different values than this are an amount, not labels.
_MOST_LABELS = 20
# Longer ones are texts to read, and nothing to find a record by.
_LONGEST_ID = 64


@dataclass(frozen=True)
class SampledColumn:
    """What a column of a sample holds.

    Attributes
    ----------
    name
        The name of the column or key.
    holds
        The kind of its values.
    n_present, n_different
        How many records have a value, and how many different ones there are.
    longest
        The longest text, in characters.
    reading
        How it is best read.
    odd
        A text among numbers that is none of them, as it is there.

    """

    name: str
    holds: Literal["numbers", "texts", "nested values", "nothing"]
    n_present: int
    n_different: int
    longest: int = 0
    reading: Reading = field(default_factory=Reading)
    odd: str = ""

    @property
    def finds_a_record(self) -> bool:
        """Whether a record can be found by it."""
        return (
            self.reading.identifies
            and not self.reading.unit
            and self.n_different == self.n_present
            and self.longest <= _LONGEST_ID
        )


@dataclass(frozen=True)
class Target:
    """What is to be predicted: a column, the type of its values, whether somebody named it, and how it is read."""

    name: str
    kind: Literal["str", "int", "bool", "float"]
    guessed: bool
    reading: Reading = field(default_factory=Reading)


def sample_marks(sample: Sample) -> Marks:
    """Return the marks in the numbers of a sample."""
    columns: dict[str, list[Any]] = {}
    for record in sample.records:
        for name, value in (_flat(record) or {}).items():
            columns.setdefault(name, []).append(value)
    return marks_of(columns.values(), sample.delimiter)


def describe_columns(sample: Sample, target: Target, marks: Marks) -> list[SampledColumn]:
    """Return what each column of a sample except the target holds, in order; what is nested in JSON is flattened."""
    records = [flat for record in sample.records if (flat := _flat(record, target.name)) is not None]
    names = dict.fromkeys(name for record in records for name in record)
    return [_column(sample, name, _present(records, name), marks) for name in names]


def _flat(record: Mapping[str, Any], target: str | None = None) -> dict[str, Any] | None:
    try:
        flat = flattened({name: value for name, value in record.items() if name != target}, lambda _: "flatten")
    except UndecodableError:  # nested too deep
        return None
    if target is not None:
        flat.pop(target, None)
    return flat


def find_target(sample: Sample, name: str | None, marks: Marks) -> Target:
    """Return the target of a sample: the column of this name, or the one that looks most like it.

    Raises
    ------
    SampleError
        Where there is no such column, or none of its values can be learned.

    """
    if not sample.columns:
        raise SampleError(f"{sample.path}: its first records are empty: use a file with values")
    if name is None:
        named = [one for one in sample.columns if one.strip().lower() in _TARGET_NAMES]
        name, guessed = (named or list(sample.columns))[-1], True
    elif any(find(record, nfc(name)) is not None for record in sample.records) or nfc(name) in sample.columns:
        name, guessed = nfc(name), False
    else:
        listed = ", ".join(map(repr, sample.columns[:20]))
        raise SampleError(
            f"--target: {sample.path} has no column {name!r}, it has {listed}{hint(name, sample.columns)}"
        )
    values = _present(sample.records, name)
    column = _column(sample, name, values, marks)
    if column.holds in ("nothing", "nested values"):
        has = "is empty" if column.holds == "nothing" else "holds nested values"
        raise SampleError(
            f"{sample.path}: the column {name!r} {has} in its first records: name another one by --target"
        )
    return Target(name, _kind(values, column), guessed, column.reading)


def _kind(values: list[Any], column: SampledColumn) -> Literal["str", "int", "bool", "float"]:
    if all(isinstance(value, bool) for value in values):
        return "bool"
    if column.holds == "texts":
        return "str"
    whole = all(number.is_integer() for value in values if (number := column.reading.number(value)) is not None)
    return "int" if whole and column.n_different <= _MOST_LABELS else "float"


def _present(records: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [value for record in records if not is_absent(value := find(record, name))]


def _column(sample: Sample, name: str, values: list[Any], marks: Marks) -> SampledColumn:
    if not values:
        return SampledColumn(name, "nothing", 0, 0)
    if any(isinstance(value, dict | list) for value in values):
        return SampledColumn(name, "nested values", len(values), 0)
    different = len(set(values))
    reading = reading_of(name, values, sample.kind, marks)
    # A text of digits is a number in CSV, and a text in JSON.
    if not reading.is_plain or (
        are_numbers([value for value in values if value not in reading.na])
        and (sample.kind == "csv" or not any(isinstance(value, str) for value in values))
    ):
        odd = (str(value) for value in values if value not in reading.na and reading.number(value) is None)
        return SampledColumn(name, "numbers", len(values), different, reading=reading, odd=next(odd, ""))
    return SampledColumn(name, "texts", len(values), different, max(len(str(value)) for value in values), reading)
