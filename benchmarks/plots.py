"""Plots: panels without frames, saved to a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLORS = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"),
    *("#000000", "#999999", "#8B5A2B", "#4B0082", "#F0E442", "#7F0000"),
)


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
