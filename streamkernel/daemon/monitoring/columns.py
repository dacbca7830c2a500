"""The columns of a record as a table: their values, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence

from streamkernel.connectors.ports import ColumnUse
from streamkernel.daemon.monitoring.visible import visible

__all__ = ["column_lines"]

_MOST_COLUMNS = 100
_WIDEST = 40


def column_lines(uses: Sequence[ColumnUse]) -> list[str]:
    """Return a line for each column of a record: name, value, type and use, one below the other.

    Examples
    --------
    >>> column_lines([ColumnUse("id", "'A-7'", "string", "excluded"), ColumnUse("amount", "7.5", "number", "input")])
    ["  id      'A-7'  string  excluded", '  amount  7.5    number  input']

    """
    shown = [_visible(use) for use in uses[:_MOST_COLUMNS]]
    name, value, kind = (
        min(max(map(len, cells), default=0), _WIDEST)
        for cells in ([use.name for use in shown], [use.value for use in shown], [use.type for use in shown])
    )
    lines = [f"  {use.name:{name}}  {use.value:{value}}  {use.type:{kind}}  {use.use}" for use in shown]
    return lines + ([f"  and {len(uses) - _MOST_COLUMNS} more"] if len(uses) > _MOST_COLUMNS else [])


def _visible(use: ColumnUse) -> ColumnUse:
    """Return what a terminal shows, with which columns are aligned; a name that is empty is quoted."""
    return use._replace(name=visible(use.name) or "''", value=visible(use.value), use=visible(use.use))
