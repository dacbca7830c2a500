"""The figures of runs side by side: their names, their texts, which one is best, and the table at the end of a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table

from streamkernel.daemon.monitoring.view import View

__all__ = ["Figure", "figure_rows", "shown_number", "summary", "summary_table"]

_LARGEST_IN_FULL = 1e12
_LABELS = {"log_loss": "log loss, all records"}
_BASELINES = {"log_loss": "class shares", "mae": "mean so far", "rmse": "mean so far"}
# Of report metrics alone: the loss of one model may not be that of another, and how fast a run was is chance, too.
_BETTER: Mapping[str, Literal["higher", "lower"]] = {
    "accuracy": "higher",
    "macro_f1": "higher",
    "r2": "higher",
    "log_loss": "lower",
    "mae": "lower",
    "rmse": "lower",
}
_NOTES = {
    "progressive loss": "the mean of the model's loss before it learns each record",
    "majority class": "predicts the most frequent class so far",
    "class shares": "the probability of a class is its share so far",
    "mean so far": "predicts the mean of the targets so far",
}


class Figure(NamedTuple):
    """One figure of a run."""

    text: str
    best: bool = False  # of all runs that have one of its name, where it is known which is better


def figure_rows(views: Mapping[str, View]) -> dict[str, list[Figure | None]]:
    """Return each figure by its name, in a list with a place for each run; None where a run lacks it.

    Examples
    --------
    >>> rows = figure_rows({"a": View(overall={"mae": 2.0}), "b": View(overall={"mae": 1.0})})
    >>> rows["mae"]
    [Figure(text='2.0000', best=False), Figure(text='1.0000', best=True)]

    """
    columns = [dict(_figures(view)) for view in views.values()]
    best = {_label(name): _best(name, views.values()) for name in _BETTER}
    return {
        label: [
            None if label not in column else Figure(column[label], index in best.get(label, ()))
            for index, column in enumerate(columns)
        ]
        # A run may lack what another one has: features, or an error metric.
        for label in dict.fromkeys(itertools.chain(*columns))
    }


def shown_number(value: float) -> str:
    """Return a number with four decimals; as a power of ten where that would be a row of digits.

    Examples
    --------
    >>> shown_number(0.25), shown_number(float("nan")), shown_number(6.5e300)
    ('0.2500', 'nan', '6.5000e+300')

    """
    return f"{value:.4f}" if not abs(value) >= _LARGEST_IN_FULL else f"{value:.4e}"


def _figures(view: View) -> Iterable[tuple[str, str]]:
    yield "records", f"{view.taken:,}"
    for name, value in view.overall.items():
        if not math.isnan(value):
            yield _label(name), shown_number(value)
            if name in view.baseline:
                of = _BASELINES.get(name, "majority class")
                yield f"{_name(name)} of the {of}", shown_number(view.baseline[name])
    for target, figures in view.targets.items():
        for name, value in figures.items():
            yield f"{_name(name)} of {target}", shown_number(value)
    if not math.isnan(view.loss):
        last = f", last {min(view.window, view.taken):,}" if view.window else ""
        yield f"progressive loss{last}", shown_number(view.loss)
    if view.losses_not_finite:
        yield "losses not finite", f"{view.losses_not_finite:,}"
    if "features" in view.growth:
        yield "features", f"{view.growth['features']:,}"
        yield "blocks grown, reused", f"{view.growth['grown']:,}, {view.growth['reused']:,}"
    if "refits" in view.growth:
        yield "refits", f"{view.growth['refits']:,}"
    if not math.isnan(view.rate):
        yield "records/s", f"{view.rate:,.0f}"
    for name, count in view.account.items():
        yield f"account: {name}", f"{count:,}"
    for name, count in view.labels.items():
        yield f"labels: {name}", f"{count:,}"


def _name(metric: str) -> str:
    return metric.replace("_", " ")


def _label(metric: str) -> str:
    return _LABELS.get(metric, _name(metric))


def _best(name: str, views: Iterable[View]) -> Sequence[int]:
    """Return at which places the best value of a metric is; nowhere where it is one of one, or that of all."""
    found = {index: view.overall[name] for index, view in enumerate(views) if name in view.overall}
    found = {index: value for index, value in found.items() if math.isfinite(value)}
    if len(set(found.values())) < 2:
        return []
    best = (max if _BETTER[name] == "higher" else min)(found.values())
    return [index for index, value in found.items() if value == best]


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
