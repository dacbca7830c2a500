"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table

from streamkernel.daemon.monitoring.figures import figure_rows
from streamkernel.daemon.monitoring.view import View

__all__ = ["summary", "summary_table"]

_NOTES = {
    "progressive loss": "the mean of the model's loss before it learns each record",
    "majority class": "predicts the most frequent class so far",
    "class shares": "the probability of a class is its share so far",
    "mean so far": "predicts the mean of the targets so far",
}


def summary(views: Mapping[str, View]) -> Group:
    """Return the table, and below it what is not said by the names of its rows."""
    table = summary_table(views)
    rows = figure_rows(views)
    notes = {name: note for name, note in _NOTES.items() if any(name in label for label in rows)}
    if "mae" in rows and "progressive loss" in notes:
        of = ", summed over the targets" if any(view.targets for view in views.values()) else ""
        notes["progressive loss"] = f"mean loss before learning a record, in target variances{of}"
    if any(view.account and view.account["consumed"] != view.taken for view in views.values()):
        notes["account"] = "of all runs since the first start; the rows above: of this run"
    return Group(table, *(f"  {name}: {note}" for name, note in notes.items()), "")


def summary_table(views: Mapping[str, View]) -> Table:
    """Return a table with one column for each run: its last view, by its name."""
    table = Table(box=SIMPLE, show_header=len(views) > 1)
    table.add_column("")
    for name in views:
        table.add_column(name, justify="right")
    for label, figures in figure_rows(views).items():
        table.add_row(label, *("" if figure is None else figure.text for figure in figures))
    return table
