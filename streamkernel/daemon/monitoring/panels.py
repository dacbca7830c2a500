"""The panels of a plot or report: which curves of which runs stand over each other, with the marks among them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamkernel.daemon.monitoring.evaluation import Evaluation

__all__ = ["Curve", "Panel", "curve_name", "panels_of"]


@dataclass(frozen=True)
class Curve:
    """A curve of a run: values after so many records, NaN where there is none."""

    run: int  # its place among the runs
    name: str
    records: Sequence[int]
    values: Sequence[float]
    drifts: Sequence[int] = ()
    relearnings: Sequence[int] = ()

    @property
    def last(self) -> float:
        """The last value; NaN where there is none."""
        return self.values[-1] if self.values else math.nan


@dataclass(frozen=True)
class Panel:
    """Curves that are drawn over each other."""

    title: str
    curves: Sequence[Curve]
    counts: bool = False  # whether its values are whole numbers, from 0 on


def panels_of(evaluations: Mapping[str, Evaluation], all_metrics: bool) -> list[Panel]:
    """Return the panels of evaluations by name: progressive loss, rolling metrics, features.

    Of the metrics there are all, or the first one of each report; metrics and features where a run has them.
    """
    metrics = dict.fromkeys(
        name for evaluation in evaluations.values() for name in list(evaluation.rolling)[: None if all_metrics else 1]
    )
    panels = [_panel("progressive loss", {name: one.loss for name, one in evaluations.items()}, evaluations)]
    for metric in metrics:
        values = {name: one.rolling[metric] for name, one in evaluations.items() if metric in one.rolling}
        panels.append(_panel(f"rolling {metric.replace('_', ' ')}", values, evaluations))
    features = {
        name: [math.nan if value is None else float(value) for value in one.features]
        for name, one in evaluations.items()
        if one.features
    }
    if features:
        panels.append(_panel("random features", features, evaluations, counts=True))
    return panels


def curve_name(name: str, n_not_finite: int) -> str:
    """Name a run, and say how many losses it lacks, of which no mean can be taken."""
    return f"{name} (without {n_not_finite:,} losses that are not finite)" if n_not_finite else name


def _panel(
    title: str, values: Mapping[str, Sequence[float]], evaluations: Mapping[str, Evaluation], counts: bool = False
) -> Panel:
    runs = list(evaluations)
    curves = [
        Curve(
            runs.index(name),
            curve_name(name, evaluations[name].view.losses_not_finite),
            evaluations[name].records,
            one,
            evaluations[name].drifts,
            evaluations[name].relearnings,
        )
        for name, one in values.items()
    ]
    return Panel(title, curves, counts)
