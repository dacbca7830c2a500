"""The table at the end of a run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from rich.box import SIMPLE
from rich.table import Table

from streamkernel.daemon.monitoring.view import View

__all__ = ["summary_table"]


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
    cells += [(name.replace("_", " "), f"{value:.4f}") for name, value in view.overall.items()]
    cells.append(("progressive loss", f"{view.loss:.4f}"))
    if view.losses_not_finite:
        cells.append(("losses not finite", f"{view.losses_not_finite:,}"))
    if "features" in view.growth:
        cells.append(("features", f"{view.growth['features']:,}"))
        cells.append(("blocks grown, reused", f"{view.growth['grown']:,}, {view.growth['reused']:,}"))
    cells.append(("records/s", f"{view.rate:,.0f}"))
    cells += [(f"account: {name}", f"{count:,}") for name, count in view.account.items()]
    cells += [(f"labels: {name}", f"{count:,}") for name, count in view.labels.items()]
    return cells
