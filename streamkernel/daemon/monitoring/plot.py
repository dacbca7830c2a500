"""The plot of an evaluation: progressive loss above, feature count below."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.monitoring.evaluation import Evaluation

__all__ = ["plot", "require_matplotlib"]

# Okabe and Ito's colours are told apart with any colour vision; the dashes serve in print.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 3)))


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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    grown = any(evaluation.features for evaluation in evaluations.values())
    figure = Figure(figsize=(8, 6.5 if grown else 4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2 if grown else 1, 1, sharex=True, squeeze=False)[:, 0]
    for index, (name, evaluation) in enumerate(evaluations.items()):
        style = {
            "color": _COLOURS[index % len(_COLOURS)],
            "linestyle": _DASHES[index % len(_DASHES)],
            "linewidth": 1.8,
            "label": _label(name, evaluation.view.losses_not_finite),
        }
        panels[0].plot(evaluation.records, evaluation.loss, **style)
        if evaluation.features:
            panels[1].plot(evaluation.records, evaluation.features, **style)
    panels[0].set_ylabel("progressive loss")
    if grown:
        panels[1].set_ylabel("random features")
        panels[1].set_ylim(bottom=0)
    panels[-1].set_xlabel("records")
    for panel in panels:
        panel.grid(visible=True, color="0.9")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise DaemonError(f"{path}: cannot be written: {error.strerror}") from None


def _label(name: str, n_not_finite: int) -> str:
    """Name a curve, and say how many losses it lacks, of which no mean can be taken."""
    return f"{name} (without {n_not_finite:,} losses that are not finite)" if n_not_finite else name
