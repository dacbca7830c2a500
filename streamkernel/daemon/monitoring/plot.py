"""The plot of evaluations: panels of loss, rolling metric and features one below the other, with marks of drifts."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.monitoring.evaluation import Evaluation
from streamkernel.daemon.monitoring.line_styles import LIGHT_COLORS, line_style
from streamkernel.daemon.monitoring.panels import Curve, Panel, panels_of
from streamkernel.daemon.monitoring.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot", "require_matplotlib"]

_INK, _MUTED, _GRID = "#1f2328", "#59636e", "#e4e7eb"
_WIDTH, _PANEL_HEIGHT, _ROW_HEIGHT, _MARGIN = 8.6, 2.35, 0.22, 0.33  # inches
_LEGEND_CHARACTERS = 84  # that a row of the legend has room for
_SETTINGS: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "text.color": _INK,
    "axes.labelcolor": _MUTED,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "text.parse_math": False,  # a name may have dollars in it
}


def require_matplotlib() -> None:
    """Make sure that `plot` can do its work.

    Raises
    ------
    DaemonError
        Where matplotlib is not installed.

    """
    if importlib.util.find_spec("matplotlib") is None:
        raise DaemonError("--plot needs matplotlib: pip install 'streamkernel[plot]'")


def plot(evaluations: Mapping[str, Evaluation], path: Path) -> None:
    """Draw the curves of evaluations, by the name that goes into the legend, into a PNG file.

    Raises
    ------
    DaemonError
        Where matplotlib is not installed, or the file cannot be written.

    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    panels = panels_of(evaluations, all_metrics=False)
    with mpl.rc_context(_SETTINGS):
        legend = _legend(panels[0])
        n_columns = max(1, _LEGEND_CHARACTERS // max((len(label) + 8 for label, _ in legend), default=1))
        height = _PANEL_HEIGHT * len(panels) + _ROW_HEIGHT * math.ceil(len(legend) / n_columns) + _MARGIN
        drawing = Drawing(figsize=(_WIDTH, height), dpi=150, layout="constrained")
        FigureCanvasAgg(drawing)
        all_axes = drawing.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, panel in zip(all_axes, panels, strict=True):
            _draw(axes, panel)
        all_axes[-1].set_xlabel("records")
        drawing.legend(
            [line for _, line in legend],
            [label for label, _ in legend],
            loc="outside upper left",
            ncols=min(n_columns, len(legend) or 1),
            frameon=False,
            handlelength=2.6,
            columnspacing=2.2,
        )
        picture = io.BytesIO()  # a pipe cannot be sought in, as the writer of PNG does
        drawing.savefig(picture, format="png")
    write_whole(path, picture.getvalue())


def _draw(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import StrMethodFormatter

    for curve in panel.curves:
        style = _style(curve)
        for record in curve.drifts:
            axes.axvline(record, color=style["color"], linewidth=1.0, alpha=0.55, zorder=1)
        for record in curve.relearnings:
            axes.axvline(record, ymax=0.06, color=style["color"], linewidth=1.0, alpha=0.8, zorder=1)
        # A line needs two points to be seen.
        axes.plot(
            curve.records, curve.values, **style, marker="o" if len(curve.records) == 1 else None, label=curve.name
        )
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


def _style(curve: Curve) -> dict[str, Any]:
    style = line_style(curve.run)
    dashes: Any = (0, style.dashes) if style.dashes else "-"
    return {"color": LIGHT_COLORS[style.color], "linestyle": dashes, "linewidth": 1.8}


def _shortened(name: str) -> str:
    return name if len(name) <= _LEGEND_CHARACTERS else f"{name[: _LEGEND_CHARACTERS - 1]}\u2026"


def _legend(panel: Panel) -> list[tuple[str, Any]]:
    """Return the name of each run with its line, and what the marks mean where there are some."""
    from matplotlib.lines import Line2D

    found = [(_shortened(curve.name), Line2D([], [], **_style(curve))) for curve in panel.curves]
    mark: dict[str, Any] = {"color": _MUTED, "marker": "|", "linestyle": "none", "alpha": 0.8}
    if any(curve.drifts for curve in panel.curves):
        found.append(("drift detected", Line2D([], [], **mark, markersize=13)))
    if any(curve.relearnings for curve in panel.curves):
        found.append(("metric learned", Line2D([], [], **mark, markersize=5)))
    return found
