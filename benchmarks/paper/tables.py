"""Cells, pages and plots that the experiments share."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.runs import CurvePoint

_COLORS = [
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#000000",
    "#999999",
    "#8B5A2B",
    "#4B0082",
    "#F0E442",
    "#7F0000",
]

#: What is shown of a test set without an error, which a logarithm does not have.
_LEAST = 1e-7


def percent(values: Sequence[float]) -> str:
    """Mean and deviation in percent."""
    return spread([100 * value for value in values], 2)


def spread(values: Sequence[float], digits: int) -> str:
    """Mean and, of several, deviation."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values):.{digits}f}"


def megabytes(nbytes: float) -> str:
    """Bytes in MB, with three digits; a dash for none."""
    return f"{nbytes / 1e6:,.0f}" if nbytes >= 1e8 else f"{nbytes / 1e6:.3g}" if nbytes else "-"


def write_looks(path: Path, runs: Mapping[tuple[str, str, int], Sequence[CurvePoint]]) -> None:
    """Every look of every run, by problem, algorithm and seed."""
    names = [*CurvePoint.__dataclass_fields__]
    rows = ([*key, *(getattr(look, name) for name in names)] for key, looks in runs.items() for look in looks)
    write_rows(path, ["problem", "algorithm", "seed", *names], rows)


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file; numbers with five digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([f"{cell:.5g}" if isinstance(cell, float) else cell for cell in row] for row in rows)


def plot_curves(
    path: Path,
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    x_label: str,
    y_label: str,
    guide: float | None = None,
) -> None:
    """Lines on logarithmic axes, a panel each problem.

    Parameters
    ----------
    path
        Where the plot goes.
    panels
        By title, the lines by name, each as x and y.
    x_label, y_label
        Of the axes.
    guide
        The slope of a dotted line from the first line's middle; None for no line.

    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(1, len(panels), figsize=(6.6 * len(panels), 4.4), squeeze=False)
    for axis, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for i, (name, (x, y)) in enumerate(lines.items()):
            color, style = _COLORS[i % len(_COLORS)], "-" if i < len(_COLORS) else "--"
            axis.plot(x, np.maximum(y, _LEAST), style, color=color, label=name, linewidth=2, marker="o", markersize=2.5)
        if guide is not None:
            u, v = (np.array(part) for part in next(iter(lines.values())))
            middle = len(u) // 2
            axis.plot(u, v[middle] * (u / u[middle]) ** guide, ":", color="#555555", label=f"slope {guide:g}")
        axis.set(title=title, xscale="log", yscale="log", xlabel=x_label)
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25, which="both")
        axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))  # beside the lines
    axes[0][0].set_ylabel(y_label)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
