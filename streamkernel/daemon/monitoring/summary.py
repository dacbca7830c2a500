"""The table at the end of a run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from rich.box import SIMPLE
from rich.table import Table

from streamkernel.daemon.monitoring.view import View

__all__ = ["summary_table"]

_LARGEST_IN_FULL = 1e12


def summary_table(views: Mapping[str, View]) -> Table:
    """Return a table with one column for each run: its last view, by its name."""
    table = Table(box=SIMPLE, show_header=len(views) > 1)
    table.add_column("")
    for name in views:
        table.add_column(name, justify="right")
    columns = [dict(_cells(view)) for view in views.values()]
    for label in dict.fromkeys(itertools.chain(*columns)):
        # A run may lack what another one has: features, or an error metric.
        table.add_row(label, *(column.get(label, "") for column in columns))
    return table


def _cells(view: View) -> list[tuple[str, str]]:
    cells = [("records", f"{view.taken:,}")]
    cells += [(name.replace("_", " "), _shown(value)) for name, value in view.overall.items()]
    cells.append(("progressive loss", _shown(view.loss)))
    if view.losses_not_finite:
        cells.append(("losses not finite", f"{view.losses_not_finite:,}"))
    if "features" in view.growth:
        cells.append(("features", f"{view.growth['features']:,}"))
        cells.append(("blocks grown, reused", f"{view.growth['grown']:,}, {view.growth['reused']:,}"))
    if "refits" in view.growth:
        cells.append(("refits", f"{view.growth['refits']:,}"))
    cells.append(("records/s", f"{view.rate:,.0f}"))
    cells += [(f"account: {name}", f"{count:,}") for name, count in view.account.items()]
    cells += [(f"labels: {name}", f"{count:,}") for name, count in view.labels.items()]
    return cells


def _shown(value: float) -> str:
    """Return a number with four decimals; as a power of ten where that would be a row of digits.

    Examples
    --------
    >>> _shown(0.25), _shown(float("nan")), _shown(6.5e300)
    ('0.2500', 'nan', '6.5000e+300')

    """
    return f"{value:.4f}" if not abs(value) >= _LARGEST_IN_FULL else f"{value:.4e}"
