"""Mean ranks over many streams, and the difference that chance would explain (Demsar 2006: Friedman, Nemenyi)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata, studentized_range


@dataclass(frozen=True)
class Ranking:
    """Models from the best mean rank to the worst."""

    title: str
    models: list[str]
    ranks: list[float]
    n_streams: int
    critical: float

    def rank(self, model: str) -> float:
        """The mean rank of a model."""
        return self.ranks[self.models.index(model)]


def ranking(title: str, models: Sequence[str], losses: Sequence[Sequence[float]]) -> Ranking:
    """Rank models by their losses, a row a stream (lower is better; infinite: last, ties share the mean rank)."""
    mean = rankdata(np.array(losses), axis=1).mean(axis=0)
    order = np.argsort(mean, kind="stable")
    k, n = len(models), len(losses)
    quantile = float(studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2)
    critical = quantile * math.sqrt(k * (k + 1) / (6 * n))
    return Ranking(title, [models[i] for i in order], [float(mean[i]) for i in order], n, critical)
