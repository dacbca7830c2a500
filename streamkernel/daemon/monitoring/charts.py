"""The charts of evaluations, drawn by matplotlib: one PNG file, or an SVG for each chart of the report."""

from __future__ import annotations

import importlib.util
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.monitoring.evaluation import Evaluation
from streamkernel.daemon.monitoring.tables import shown_number
from streamkernel.daemon.monitoring.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["Panel", "line_style", "panels_of", "plot", "require_matplotlib", "svg"]

#: Okabe and Ito's colors differ with any color vision; the dashes serve in print.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES: tuple[tuple[int, ...], ...] = ((), (4, 2), (6, 2, 1, 2), (1, 2), (5, 1, 1, 1, 1, 1), (1, 3), (8, 3))
_INK, _MUTED, _GRID = "#1f2328", "#59636e", "#e4e7eb"
_WIDTH, _PANEL_HEIGHT, _ROW_HEIGHT, _MARGIN = 8.6, 2.35, 0.22, 0.33  # inches
_LEGEND_CHARACTERS = 84  # that a row of the legend has room for
_LARGEST = 1e200  # matplotlib overflows where it draws larger values
_SETTINGS: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "text.color": _INK,
    "axes.labelcolor": _MUTED,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "text.parse_math": False,  # a name may have dollars in it
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "streamkernel",  # the same evaluation gives the same bytes
}


@dataclass(frozen=True)
class Panel:
    """One chart: the values of each run by its name, NaN where a run has none."""

    title: str
    evaluations: Mapping[str, Evaluation]
    values: Mapping[str, Sequence[float]]
    counts: bool = False  # whether its values are whole numbers, from 0 on

    @property
    def summary(self) -> str:
        """The chart in words: the last value of each run."""
        ends = (f"{self.name(run)} {self._number(values)}" for run, values in self.values.items())
        return f"{self.title.capitalize()} by records, at the end: {', '.join(ends)}"

    def name(self, run: str) -> str:
        """Return the name of a run, and how many losses its mean leaves out."""
        left_out = self.evaluations[run].view.losses_not_finite
        return f"{run} (without {left_out:,} losses that are not finite)" if left_out else run

    def style(self, run: str) -> dict[str, Any]:
        """Return the style of a run's curve, the same in every chart."""
        return line_style(list(self.evaluations).index(run))

    def _number(self, values: Sequence[float]) -> str:
        if not values or not math.isfinite(values[-1]):
            return "none"
        return f"{values[-1]:,.0f}" if self.counts else shown_number(values[-1])


def panels_of(evaluations: Mapping[str, Evaluation], all_metrics: bool) -> list[Panel]:
    """Return the charts of evaluations by name: progressive loss, rolling metrics, features.

    It takes all metrics, or the first one of each run. Metrics and features have a chart if a run has them.
    """
    metrics = dict.fromkeys(
        name for evaluation in evaluations.values() for name in list(evaluation.rolling)[: None if all_metrics else 1]
    )
    panels = [Panel("progressive loss", evaluations, {name: one.loss for name, one in evaluations.items()})]
    for metric in metrics:
        values = {name: one.rolling[metric] for name, one in evaluations.items() if metric in one.rolling}
        panels.append(Panel(f"rolling {metric.replace('_', ' ')}", evaluations, values))
    features = {
        name: [math.nan if value is None else float(value) for value in one.features]
        for name, one in evaluations.items()
        if one.features
    }
    return [*panels, Panel("random features", evaluations, features, counts=True)] if features else panels


def line_style(place: int) -> dict[str, Any]:
    """Return the style of a run by its place; the first 49 differ.

    Examples
    --------
    >>> line_style(1)
    {'color': '#D55E00', 'linestyle': (0, (4, 2)), 'linewidth': 1.8}

    """
    dashes = _DASHES[(place + place // len(_COLORS)) % len(_DASHES)]
    return {"color": _COLORS[place % len(_COLORS)], "linestyle": (0, dashes) if dashes else "-", "linewidth": 1.8}


def require_matplotlib(option: str) -> None:
    """Raise DaemonError, with the option that needs it, if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise DaemonError(f"{option} needs matplotlib: pip install 'streamkernel[plot]'")


def plot(evaluations: Mapping[str, Evaluation], path: Path) -> None:
    """Draw the charts of evaluations, one below the other, into a PNG file.

    Raises
    ------
    DaemonError
        The file cannot be written.

    """
    write_whole(path, _picture(panels_of(evaluations, all_metrics=False), format="png"))


def svg(panel: Panel) -> str:
    """Return a chart as an SVG element to put into HTML."""
    unsaid = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    text = _picture([panel], format="svg", metadata=unsaid).decode()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # Several charts are in one document: only the ids that are referred to, hashes, stay.
    return re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)


def _picture(panels: Sequence[Panel], **saved: Any) -> bytes:
    import matplotlib as mpl

    file = io.BytesIO()
    with mpl.rc_context(_SETTINGS):
        _drawing(panels).savefig(file, **saved)
    return file.getvalue()


def _drawing(panels: Sequence[Panel]) -> Drawing:
    from matplotlib.figure import Figure as Drawing

    legend = dict(_legend(panels[0]))
    n_columns = max(1, _LEGEND_CHARACTERS // max((len(label) + 8 for label in legend), default=1))
    height = _PANEL_HEIGHT * len(panels) + _ROW_HEIGHT * math.ceil(len(legend) / n_columns) + _MARGIN
    drawing = Drawing(figsize=(_WIDTH, height), dpi=150, layout="constrained")
    all_axes = drawing.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(all_axes, panels, strict=True):
        _draw(axes, panel)
    all_axes[-1].set_xlabel("records")
    drawing.legend(
        list(legend.values()),
        list(legend),
        loc="outside upper left",
        ncols=min(n_columns, len(legend) or 1),
        frameon=False,
        handlelength=2.6,
        columnspacing=2.2,
    )
    return drawing


def _draw(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import StrMethodFormatter

    for run, all_values in panel.values.items():
        evaluation, style = panel.evaluations[run], panel.style(run)
        for record in evaluation.drifts:
            axes.axvline(record, color=style["color"], linewidth=1.0, alpha=0.55, zorder=1)
        for record in evaluation.relearnings:
            axes.axvline(record, ymax=0.06, color=style["color"], linewidth=1.0, alpha=0.8, zorder=1)
        values = [value if abs(value) < _LARGEST else math.nan for value in all_values]
        points: dict[str, Any] = {"marker": "o", "markersize": 4, "markevery": _alone(values)}
        axes.plot(evaluation.records, values, label=panel.name(run), **style, **points)
    axes.set_title(panel.title.capitalize(), loc="left", fontweight="bold", pad=8)
    axes.grid(visible=True, axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#afb8c1")
    axes.tick_params(colors=_MUTED, length=0, pad=6)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.margins(x=0.01)
    axes.set_xlim(left=0)
    if panel.counts:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _alone(values: Sequence[float]) -> list[int]:
    """Return the places of values between two gaps: a line needs two points to be seen."""
    there = [False, *map(math.isfinite, values), False]
    return [place for place in range(len(values)) if there[place : place + 3] == [False, True, False]]


def _legend(panel: Panel) -> Iterator[tuple[str, Any]]:
    """Yield the name of each run with its line, and the marks with their meaning."""
    from matplotlib.lines import Line2D

    for run in panel.values:
        name = panel.name(run)
        shown = name if len(name) <= _LEGEND_CHARACTERS else f"{name[: _LEGEND_CHARACTERS - 1]}\u2026"
        yield shown, Line2D([], [], **panel.style(run))
    mark: dict[str, Any] = {"color": _MUTED, "marker": "|", "linestyle": "none", "alpha": 0.8}
    runs = [panel.evaluations[run] for run in panel.values]
    if any(run.drifts for run in runs):
        yield "drift detected", Line2D([], [], **mark, markersize=13)
    if any(run.relearnings for run in runs):
        yield "metric learned", Line2D([], [], **mark, markersize=5)
