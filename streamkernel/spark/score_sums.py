"""Sums of a batch's predictions: the daemon's report metrics of each chunk, which add up over partitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from streamkernel.batch.passes import ScoredChunk
from streamkernel.daemon.stream.quality import TALLIES, log_losses
from streamkernel.estimators.base import StreamEstimator
from streamkernel.finite import clamped
from streamkernel.records.classes import Classes, TwoSides
from streamkernel.records.targets import Numbers

__all__ = ["ScoreSums"]


@dataclass(frozen=True)
class ScoreSums:
    """Counts and sums of predictions made before their records were learned.

    Attributes
    ----------
    n, n_learned
        All records, and the learned ones.
    n_losses, loss, n_not_finite
        The number of finite losses of the model's own, their sum, and the number of others.
    tally
        The daemon's tally of targets and predictions; None before the first batch.

    """

    n: int = 0
    n_learned: int = 0
    n_losses: int = 0
    loss: float = 0.0
    n_not_finite: int = 0
    tally: Any = None

    @classmethod
    def of(cls, model: StreamEstimator, chunk: ScoredChunk) -> Self:
        """Return the sums of a chunk."""
        learned = np.flatnonzero(chunk.encoded.learned)
        losses = chunk.result.losses[learned]
        finite = np.isfinite(losses)
        loss = clamped(float(losses[finite].sum()))
        n_finite = int(finite.sum())
        tally = _tally(model, chunk, learned.tolist())
        return cls(len(chunk.encoded.y), len(learned), n_finite, loss, len(losses) - n_finite, tally)

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """Return the sums of all records."""
        tallies = [part.tally for part in parts if part.tally is not None]
        total: Any = type(tallies[0])() if tallies else None
        for tally in tallies:
            total.merge(tally)
        return cls(
            sum(part.n for part in parts),
            sum(part.n_learned for part in parts),
            sum(part.n_losses for part in parts),
            clamped(sum(part.loss for part in parts)),
            sum(part.n_not_finite for part in parts),
            total,
        )

    @property
    def mean_loss(self) -> float:
        """The mean of the model's own loss; NaN where there is none."""
        return self.loss / self.n_losses if self.n_losses else math.nan

    def metric(self, name: str) -> float:
        """Return a report metric by its name; NaN where no record has it."""
        return math.nan if self.tally is None else float(self.tally.get(name))


def _tally(model: StreamEstimator, chunk: ScoredChunk, learned: list[int]) -> Any:
    """Return the tally of a chunk's learned rows, without those predicted before the first label."""
    labels = isinstance(model._targets, Classes | TwoSides)
    numbers = isinstance(model._targets, Numbers)
    tally = TALLIES["classification" if labels else "regression" if numbers else "novelty"]()
    if learned:
        outcome = model._outcome(chunk.result)
        kept = [i for i in learned if outcome.predictions[i] is not None]
        targets = [chunk.encoded.targets[i] for i in kept]
        losses = np.empty(0)
        if labels and outcome.probabilities is not None:
            losses = log_losses(targets, [outcome.probabilities[i] for i in kept])
        tally.add(targets, [outcome.predictions[i] for i in kept], losses)
    return tally
