"""The use of each column of a record, for `streamkernel check`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.decode import TargetDecoder, UndecodableError, shown
from streamkernel.connectors.moments import read_moment
from streamkernel.connectors.ports import ColumnUse, Record, Source

__all__ = ["empty_inputs", "input_uses", "target_use", "type_of"]

_MISSING, _NOTHING = "input, missing here", "nothing in it"
_SHORTEST_DATE = len("2024-01-31")


def empty_inputs(source: Source, record: Record) -> list[str]:
    """Return the columns of a record that are inputs without a value; none if the source cannot say."""
    try:
        uses = source.columns(record)
    except UndecodableError:  # the source has read on, to a file with another header
        return []
    return [use.name for use in uses if use.use in (_MISSING, _NOTHING)]


def input_uses(
    values: Mapping[str, Any], rules: ColumnRules, read: Callable[[str, Any], Mapping[str, Any]]
) -> list[ColumnUse]:
    """Return the use of the columns of a record.

    Parameters
    ----------
    values
        The values in the source by name, without the target.
    rules
        The rules of the columns.
    read
        Returns the inputs of a name's value; raises UndecodableError.

    """
    flat = rules.flat(dict(values))
    left_out = [
        ColumnUse(name, shown(value), "nested", _why_without(name, value, rules))
        for name, value in values.items()
        if name not in flat and not any(other.startswith(f"{name}.") for other in flat)
    ]
    absent = [
        ColumnUse(name, "", "missing", f"not in this record, named in {key}")
        for key, name in rules.named()
        if name not in values and name not in flat
    ]
    return left_out + absent + [_use(name, value, rules, read) for name, value in flat.items()]


def target_use(name: str, value: Any, targets: TargetDecoder) -> ColumnUse:
    """Return the use of the target."""
    try:
        label = targets.decode(value)
    except UndecodableError as error:
        return ColumnUse(name, shown(value), type_of(value), f"target, cannot be used: {error}")
    return ColumnUse(
        name, shown(value), type_of(value), "target, missing" if label is None else f"target {shown(label)}"
    )


def type_of(value: Any) -> str:
    """Return the name of a plain value's type."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "nested"


def _use(name: str, value: Any, rules: ColumnRules, read: Callable[[str, Any], Mapping[str, Any]]) -> ColumnUse:
    column = rules.column(name)
    if column is None:
        return ColumnUse(name, shown(value), type_of(value), rules.why_not(name))
    kind = rules.settings.types[name].type if name in rules.settings.types else "auto"
    declared = None if kind == "auto" else kind
    try:
        inputs = read(name, value)
    except UndecodableError as error:
        return ColumnUse(name, shown(value), declared or type_of(value), f"cannot be used: {error}")
    if not inputs:
        return ColumnUse(name, shown(value), declared or type_of(value), _MISSING)
    only = inputs.get(name)
    use = "input" if len(inputs) == 1 and only == value else "input " + ", ".join(map(_assigned, inputs.items()))
    hint = "" if declared else _hint(name, value, only)
    return ColumnUse(name, shown(value), declared or type_of(only), f"{use}; {hint}" if hint else use)


def _why_without(name: str, value: Any, rules: ColumnRules) -> str:
    """Return why a nested value has no columns."""
    if rules.column(name) is None:
        return rules.why_not(name)
    return "ignored" if value else _NOTHING


def _assigned(one: tuple[str, Any]) -> str:
    name, value = one
    return f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={shown(value)}"


def _hint(name: str, value: Any, read: Any) -> str:
    """Return a hint at another type of the column."""
    if isinstance(value, str) and isinstance(read, float) and len(value) > 1 and value.isdigit() and value[0] == "0":
        return f"a code? types: {{{name}: string}} keeps it as it is"
    if isinstance(read, str) and len(read) >= _SHORTEST_DATE and _is_date(read):
        return f"a date? types: {{{name}: date}} makes parts of the calendar of it"
    return ""


def _is_date(text: str) -> bool:
    try:
        read_moment(text)
    except ValueError:
        return False
    return True
