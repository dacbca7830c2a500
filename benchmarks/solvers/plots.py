"""Plots of the window benchmark: a panel each problem, and a band of the runs round each line's median."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.solvers.curve import LossCurve
from benchmarks.solvers.task import Array

#: Color and line style of each solver; those whose rows are made of factors are drawn, those on A dashed.
STYLES = {
    "DSPDC": ("#D55E00", "-"),
    "SPDC": ("#0072B2", "-"),
    "SDCA": ("#009E73", "-"),
    "DSPDC on A": ("#D55E00", "--"),
    "SPDC on A": ("#0072B2", "--"),
    "SDCA on A": ("#009E73", "--"),
    "SAGA on A": ("#CC79A7", "--"),
    "SAGA": ("#CC79A7", "-"),
    "SGD": ("#999999", "-"),
    "SSGD": ("#E69F00", "-"),
    "SCV": ("#009E73", "-"),
    "SVRG": ("#0072B2", "-"),
    "S3GD": ("#D55E00", "-"),
    "S3GD, then SVRG": ("#000000", "-"),
    "SVRG, its defaults": ("#0072B2", "--"),
}

#: A panel: by solver its runs, each as x and y.
Panel = Mapping[str, Sequence[tuple[Array, Array]]]


def plot(
    path: Path, panels: Mapping[str, Panel], x_label: str, y_label: str, columns: int = 3, y_scale: str = "log"
) -> None:
    """Medians of runs, x on a logarithmic axis, with a band from the lowest to the highest, and one legend below.

    Parameters
    ----------
    path
        Where the plot goes.
    panels
        By title.
    x_label, y_label
        Of the axes.
    columns
        Panels side by side.
    y_scale
        "log" or "linear".

    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(5.4 * columns, 4.0 * rows + 0.7), squeeze=False)
    lines = {}
    for axis, (title, panel) in zip(axes.flat, panels.items(), strict=False):
        for name, runs in panel.items():
            x, low, middle, high = _band(runs)
            color, style = STYLES[name]
            (lines[name],) = axis.plot(x, middle, style, color=color, linewidth=1.8, label=name)
            axis.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        axis.set(xscale="log", yscale=y_scale)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(x_label)
        axis.set_ylabel(y_label)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    names = sorted(lines, key=list(STYLES).index)
    figure.tight_layout(rect=(0, 0.5 / (4 * rows + 0.7), 1, 1))
    figure.legend([lines[name] for name in names], names, loc="lower center", ncol=min(len(names), 7), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


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
