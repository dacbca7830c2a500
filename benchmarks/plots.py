"""Plots: panels without frames, saved to a file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

COLORS = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"),
    *("#000000", "#999999", "#8B5A2B", "#4B0082", "#F0E442", "#7F0000"),
)
#: What is shown of a test set without an error, which a logarithm does not have.
_LEAST = 1e-7


@contextmanager
def panels(path: Path, rows: int, columns: int, size: tuple[float, float], **more: Any) -> Iterator[tuple[Any, Any]]:
    """Give a figure and its axes of shape (rows, columns); `size` is that of one panel. Then save the figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    whole = size[0] * columns, size[1] * rows
    figure, axes = pyplot.subplots(rows, columns, figsize=whole, squeeze=False, **more)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    yield figure, axes
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def curves(
    path: Path,
    found: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    x_label: str,
    y_label: str,
    guide: float | None = None,
) -> None:
    """Draw lines on logarithmic axes.

    Parameters
    ----------
    path
        Where the plot goes.
    found
        Each panel's lines by title and name, as x and y.
    x_label, y_label
        Of the axes.
    guide
        The slope of a dotted line from the first line's middle. None draws no line.

    """
    with panels(path, 1, len(found), (6.6, 4.4)) as (_, axes):
        for axis, (title, lines) in zip(axes[0], found.items(), strict=True):
            for i, (name, (x, y)) in enumerate(lines.items()):
                color, style = COLORS[i % len(COLORS)], "-" if i < len(COLORS) else "--"
                axis.plot(x, np.maximum(y, _LEAST), style, color=color, label=name, linewidth=2, marker=".")
            if guide is not None:
                u, v = (np.array(part) for part in next(iter(lines.values())))
                middle = len(u) // 2
                axis.plot(u, v[middle] * (u / u[middle]) ** guide, ":", color="#555555", label=f"slope {guide:g}")
            axis.set(title=title, xscale="log", yscale="log", xlabel=x_label)
            axis.xaxis.set_minor_formatter(lambda *_: "")
            axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))  # next to the lines
        axes[0][0].set_ylabel(y_label)
