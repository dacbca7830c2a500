"""Tallies of predictions: what report metrics need of the records of a batch, as counts and sums that add up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from streamkernel.batch.passes import ScoredChunk
from streamkernel.daemon.stream.macro_f1 import macro_f1
from streamkernel.daemon.stream.quality import log_losses
from streamkernel.estimators.base import StreamEstimator
from streamkernel.finite import LARGEST, clamped
from streamkernel.records.classes import Classes
from streamkernel.records.numbers import Numbers
from streamkernel.records.two_sides import TwoSides

__all__ = ["ScoreSums"]


@dataclass(frozen=True)
class ScoreSums:
    """What was predicted of records before they were learned, and the losses they had.

    Attributes
    ----------
    n, n_learned
        Records, and those of them that are learned.
    n_losses, loss, n_not_finite
        The finite losses of the model's own, their sum, and how many were not finite.
    pairs
        Records by target and predicted label; those predicted before any label was known are left out.
    log_loss
        The sum of their log-losses.
    n_numbers, absolute, squared
        Predictions of numbers, the sums of their absolute and squared errors.
    mean, spread
        Of their targets the mean, and the sum of the squared deviations from it.
    n_scores, n_flagged
        Scores of novelty or density ratios, and those above 0.

    """

    n: int = 0
    n_learned: int = 0
    n_losses: int = 0
    loss: float = 0.0
    n_not_finite: int = 0
    pairs: Counter[tuple[Hashable, Hashable]] = field(default_factory=Counter)
    log_loss: float = 0.0
    n_numbers: int = 0
    absolute: float = 0.0
    squared: float = 0.0
    mean: float = 0.0
    spread: float = 0.0
    n_scores: int = 0
    n_flagged: int = 0

    @classmethod
    def of(cls, model: StreamEstimator, chunk: ScoredChunk) -> Self:
        """The sums of a chunk."""
        targets: Any = model._targets
        learned = np.flatnonzero(chunk.encoded.learned)
        losses = chunk.result.losses[learned]
        finite = np.isfinite(losses)
        sums = cls(
            len(chunk.encoded.y),
            len(learned),
            int(finite.sum()),
            clamped(float(losses[finite].sum())),
            int((~finite).sum()),
        )
        if not len(learned):
            return sums
        outcome = model._outcome(chunk.result)
        predictions = [outcome.predictions[i] for i in learned.tolist()]
        if isinstance(targets, Classes | TwoSides):
            return sums._of_labels(chunk, learned, predictions, outcome.probabilities or [])
        if isinstance(targets, Numbers):
            return sums._of_numbers(chunk, learned, predictions)
        return replace(sums, n_scores=len(learned), n_flagged=sum(score > 0 for score in predictions))

    def _of_labels(self, chunk: ScoredChunk, learned: Any, predictions: list[Any], probabilities: Any) -> Self:
        truths = [chunk.encoded.targets[i] for i in learned.tolist()]
        given = [probabilities[i] for i in learned.tolist()]
        # As the daemon's report: those predicted before any label was known are left out.
        kept = [(y, p, shares) for y, p, shares in zip(truths, predictions, given, strict=True) if p is not None]
        pairs = Counter((y, p) for y, p, _ in kept)
        log_loss = float(log_losses([y for y, _, _ in kept], [shares for _, _, shares in kept]).sum())
        return replace(self, pairs=pairs, log_loss=log_loss)

    def _of_numbers(self, chunk: ScoredChunk, learned: Any, predictions: list[Any]) -> Self:
        truths = np.clip(np.array([chunk.encoded.targets[i] for i in learned.tolist()]), -LARGEST, LARGEST)
        errors = truths - np.clip(np.array(predictions, np.float64), -LARGEST, LARGEST)
        mean = float(truths.mean())
        return replace(
            self,
            n_numbers=len(truths),
            absolute=clamped(float(np.abs(errors).sum())),
            squared=clamped(float((errors * errors).sum())),
            mean=mean,
            spread=clamped(float(((truths - mean) ** 2).sum())),
        )

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """The sums of all records."""
        total = parts[0]
        for part in parts[1:]:
            total = total._with(part)
        return total

    def _with(self, other: Self) -> Self:
        n = self.n_numbers + other.n_numbers
        delta = other.mean - self.mean
        share = other.n_numbers / n if n else 0.0
        return type(self)(
            self.n + other.n,
            self.n_learned + other.n_learned,
            self.n_losses + other.n_losses,
            clamped(self.loss + other.loss),
            self.n_not_finite + other.n_not_finite,
            self.pairs + other.pairs,
            self.log_loss + other.log_loss,
            n,
            clamped(self.absolute + other.absolute),
            clamped(self.squared + other.squared),
            self.mean + share * delta,
            clamped(self.spread + other.spread + delta * delta * share * self.n_numbers),
            self.n_scores + other.n_scores,
            self.n_flagged + other.n_flagged,
        )

    @property
    def mean_loss(self) -> float:
        """The mean of the model's own loss; NaN where there is none."""
        return self.loss / self.n_losses if self.n_losses else math.nan

    def metric(self, name: str) -> float:
        """A report metric by its name; NaN where no record has it."""
        if name == "flagged":
            return self.n_flagged / self.n_scores if self.n_scores else math.nan
        if name in ("mae", "rmse", "r2"):
            return self._of_errors(name) if self.n_numbers else math.nan
        n = self.pairs.total()
        if not n:
            return math.nan
        if name == "log_loss":
            return self.log_loss / n
        correct: Counter[Hashable] = Counter()
        targets: Counter[Hashable] = Counter()
        predictions: Counter[Hashable] = Counter()
        for (truth, prediction), count in self.pairs.items():
            targets[truth] += count
            predictions[prediction] += count
            if truth == prediction:
                correct[truth] += count
        if name == "accuracy":
            return correct.total() / n
        return macro_f1(correct, targets, predictions)

    def _of_errors(self, name: str) -> float:
        if name == "mae":
            return self.absolute / self.n_numbers
        if name == "rmse":
            return math.sqrt(self.squared / self.n_numbers)
        return clamped(1.0 - self.squared / self.spread) if self.spread > 0 else 0.0
