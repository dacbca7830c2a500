"""Plots of the window benchmark: a panel each problem, and a band of the runs round each line's median."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.plots import panels
from benchmarks.solvers.curve import LossCurve
from benchmarks.solvers.task import Array

#: Colors of solid lines. The line of another name is dashed, and has the color of its first word.
_COLORS = {
    **dict.fromkeys(("DSPDC", "S3GD"), "#D55E00"),
    **dict.fromkeys(("SPDC", "SVRG"), "#0072B2"),
    **dict.fromkeys(("SDCA", "SDCA, measured blocks", "SCV"), "#009E73"),
    "SAGA": "#CC79A7",
    "SGD": "#999999",
    "SSGD": "#E69F00",
    "S3GD, then SVRG": "#000000",
}
#: A panel: by solver its runs, each as x and y.
Panel = Mapping[str, Sequence[tuple[Array, Array]]]


def plot(
    path: Path, found: Mapping[str, Panel], x_label: str, y_label: str, columns: int = 3, y_scale: str = "log"
) -> None:
    """Draw panels by title: medians of runs, x on a logarithmic axis, with a band from the lowest to the highest."""
    columns = min(columns, len(found))
    with panels(path, -(-len(found) // columns), columns, (5.4, 4.0)) as (_, axes):
        for axis in axes.flat[len(found) :]:
            axis.set_visible(False)
        for axis, (title, lines) in zip(axes.flat, found.items(), strict=False):
            for name, runs in lines.items():
                x, low, middle, high = _band(runs)
                first, style = (name, "-") if name in _COLORS else (name.replace(",", "").split()[0], "--")
                color = _COLORS[first]
                axis.plot(x, middle, style, color=color, linewidth=1.8, label=name)
                axis.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
            axis.set(title=title, xscale="log", yscale=y_scale, xlabel=x_label, ylabel=y_label)
            axis.legend(fontsize=7, frameon=False)


def _band(runs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array, Array, Array]:
    """x, and the lowest, median and highest y of the runs at it; between looks y is taken to change geometrically."""
    kept = [(x[x > 0], np.maximum(y[x > 0], 1e-17)) for x, y in runs]
    first, last = max(x[0] for x, _ in kept), min(x[-1] for x, _ in kept)
    if last <= first:
        x, y = kept[0]
        return x, y, y, y
    grid = np.geomspace(first, last, 160)
    values = np.exp([np.interp(np.log(grid), np.log(x), np.log(y)) for x, y in kept])
    return grid, values.min(axis=0), np.median(values, axis=0), values.max(axis=0)


def against(curves: Sequence[LossCurve], axis: str, optimum: float) -> list[tuple[Array, Array]]:
    """Runs as `plot` takes them: objective minus optimum against `seconds` or `passes`."""
    return [(np.array(getattr(curve, axis)), curve.excess(optimum)) for curve in curves]
