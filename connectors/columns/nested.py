"""Flattens nested values: an object or a list becomes a column for each value in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streamkernel.connectors.columns.settings import Nested
from streamkernel.connectors.decode import UndecodableError, shown
from streamkernel.connectors.names import nfc

__all__ = ["flattened"]

_DEEPEST = 32


def flattened(values: dict[str, Any], mode_of: Callable[[str], Nested]) -> dict[str, Any]:
    """Return the columns of an object.

    Parameters
    ----------
    values
        What JSON holds, by name.
    mode_of
        What becomes of a nested value under a name: ``"dead_letter"`` leaves it as it is, for its reader to refuse.

    Raises
    ------
    UndecodableError
        Where values are nested more than 32 deep, or two of them would have the same name.

    Examples
    --------
    >>> flattened({"a": 1, "b": {"c": 2, "d": [3, 4]}}, lambda name: "flatten")
    {'a': 1, 'b.c': 2, 'b.d.0': 3, 'b.d.1': 4}

    """
    columns: dict[str, Any] = {}
    _flatten(values.items(), "", mode_of, columns, 0)
    return columns


def _flatten(
    pairs: Iterable[tuple[Any, Any]], prefix: str, mode_of: Callable[[str], Nested], columns: dict[str, Any], depth: int
) -> None:
    if depth > _DEEPEST:
        raise UndecodableError("nested", f"input {shown(prefix.partition('.')[0])} is nested more than {_DEEPEST} deep")
    for key, value in pairs:
        name = nfc(f"{prefix}{key}")
        mode = mode_of(name) if isinstance(value, dict | list) else "dead_letter"
        if mode == "dead_letter":
            if name in columns:
                detail = f"two values have the same name {shown(name)} once they are flattened"
                raise UndecodableError("nested", detail, "same_name")
            columns[name] = value
        elif mode == "flatten":
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            _flatten(inner, f"{name}.", mode_of, columns, depth + 1)
