"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE
from rich.table import Table

from streamkernel.daemon.monitoring.figures import figure_rows
from streamkernel.daemon.monitoring.view import View

__all__ = ["summary_table"]


def summary_table(views: Mapping[str, View]) -> Table:
    """Return a table with one column for each run: its last view, by its name."""
    table = Table(box=SIMPLE, show_header=len(views) > 1)
    table.add_column("")
    for name in views:
        table.add_column(name, justify="right")
    for label, figures in figure_rows(views).items():
        table.add_row(label, *("" if figure is None else figure.text for figure in figures))
    return table
