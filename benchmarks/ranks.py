"""Mean ranks over many streams, and the difference that chance would explain (Demsar 2006: Friedman, Nemenyi)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, studentized_range

from benchmarks.plots import panels


@dataclass(frozen=True)
class Ranking:
    """Models from the best mean rank to the worst."""

    title: str
    models: list[str]
    ranks: list[float]
    n_streams: int
    critical: float

    def groups(self) -> list[tuple[int, int]]:
        """First and last of every longest run of models that the test does not tell apart."""
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(self.ranks):
            last = max(i for i, other in enumerate(self.ranks) if other - rank <= self.critical)
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def ranking(title: str, models: Sequence[str], losses: Sequence[Sequence[float]]) -> Ranking:
    """Rank models by their losses, a row a stream (lower is better; infinite: last, ties share the mean rank)."""
    mean = rankdata(np.array(losses), axis=1).mean(axis=0)
    order = np.argsort(mean, kind="stable")
    k, n = len(models), len(losses)
    quantile = float(studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2)
    critical = quantile * math.sqrt(k * (k + 1) / (6 * n))
    return Ranking(title, [models[i] for i in order], [float(mean[i]) for i in order], n, critical)


def plot(rankings: Sequence[Ranking], path: Path) -> None:
    """Draw an axis of mean ranks for each ranking, bars joining what does not differ."""
    heights = [1.6 + 0.24 * len(r.models) / 2 + 0.12 * len(r.groups()) for r in rankings]
    size = 9, sum(heights) / len(rankings)
    with panels(path, len(rankings), 1, size, gridspec_kw={"height_ratios": heights}) as (_, axes):
        for axis, result in zip(axes[:, 0], rankings, strict=True):
            k, groups = len(result.models), result.groups()
            top = 0.12 * len(groups) + 0.1
            axis.set_axis_off()
            axis.set_title(
                f"{result.title}: mean rank over {result.n_streams} streams (1 is best; "
                f"critical difference {result.critical:.2f})",
                fontsize=10,
            )
            axis.hlines(0, 1, k, color="black", linewidth=1)
            for tick in range(1, k + 1):
                axis.vlines(tick, 0, 0.07, color="black", linewidth=1)
                axis.text(tick, 0.1, str(tick), ha="center", va="bottom", fontsize=9)
            for level, (first, last) in enumerate(groups):
                y = -0.1 - 0.12 * level
                axis.hlines(y, result.ranks[first] - 0.05, result.ranks[last] + 0.05, color="#444444", linewidth=3.5)
            half = (k + 1) // 2
            for i, (name, rank) in enumerate(zip(result.models, result.ranks, strict=True)):
                left = i < half
                y = -top - 0.24 * ((i if left else k - 1 - i) + 0.5)
                end = 0.6 if left else k + 0.4
                color = "#D55E00" if "Kernel" in name else "#0072B2"
                axis.plot([rank, rank, end], [0, y, y], color=color, linewidth=1)
                axis.text(
                    end + (-0.06 if left else 0.06),
                    y,
                    f"{name} ({rank:.2f})",
                    ha="right" if left else "left",
                    va="center",
                    fontsize=9,
                    color=color,
                )
            axis.set_xlim(1 - 0.35 * k, k + 0.35 * k)
            axis.set_ylim(-top - 0.24 * (half + 0.5), 0.4)
