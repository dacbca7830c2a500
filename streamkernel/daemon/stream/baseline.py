"""Baselines of the report metrics: they see no input, and predict each target from the ones before it.

What a chunk costs them hardly grows with its length: counts and sums represent its records.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Protocol

import numpy as np
from river import stats

from streamkernel.daemon.stream.classes import OTHER, macro_f1
from streamkernel.finite import LARGEST

__all__ = ["Baseline", "MajorityClass", "MeanSoFar"]

_LOSS_OF_A_NEW_CLASS = -math.log(1e-15)  # as where a model gives a class no probability


def _counted(numbers: np.ndarray) -> Counter[int]:
    """Return how often each number came."""
    found, counts = np.unique(numbers, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


class Baseline(Protocol):
    """Predicts each target but the first from the ones before it, then learns it, however they are cut into chunks."""

    def add(self, targets: np.ndarray) -> None:
        """Take in the targets of a chunk."""

    def get(self, name: str) -> float:
        """Return a metric by its name in the configuration; NaN before the second target, and where it has none."""


class MajorityClass:
    """Predicts the most frequent class so far, with the shares of all as probabilities: River's `PriorClassifier`.

    It takes the numbers of classes.

    Examples
    --------
    >>> baseline = MajorityClass()
    >>> baseline.add(np.array([1, 2, 1, 1]))
    >>> round(baseline.get("accuracy"), 2), round(baseline.get("log_loss"), 2)
    (0.67, 11.88)

    """

    def __init__(self) -> None:
        self._first = OTHER
        self._best = OTHER  # none
        self._targets: Counter[int] = Counter()
        self._predictions: Counter[int] = Counter()
        self._correct: Counter[int] = Counter()
        self._n = 0
        self._log_loss = 0.0

    def add(self, targets: np.ndarray) -> None:
        """Predict each class, then count it."""
        if not self._n and len(targets):
            self._first = self._best = int(targets[0])
            self._n = self._targets[self._first] = 1
            targets = targets[1:]
        here = _counted(targets)
        self._add_losses(targets, here)
        best, counts = self._best, self._targets
        rivals = (counts[one] + n for one, n in here.items() if one not in (best, OTHER))
        if best != OTHER and max(rivals, default=0) < counts[best]:  # it stays the most frequent one
            self._predictions[best] += len(targets)
            self._correct[best] += here[best]
            counts.update(here)
        else:
            self._count_each(targets, here)
        self._n += len(targets)

    def get(self, name: str) -> float:
        """Return a metric by its name in the configuration; NaN before the second record."""
        n_scored = self._n - 1
        if n_scored < 1:
            return math.nan
        if name == "log_loss":
            return self._log_loss / n_scored
        if name == "accuracy":
            return self._correct.total() / n_scored
        return macro_f1(self._correct, self._targets - Counter([self._first]), self._predictions)

    def _add_losses(self, targets: np.ndarray, here: Counter[int]) -> None:
        """Add the logarithms of all shares before each record, of which the gamma function has the sums."""
        self._log_loss += math.lgamma(self._n + len(targets)) - math.lgamma(self._n) if len(targets) else 0.0
        for one, n in here.items():
            before = self._targets[one]
            self._log_loss -= math.lgamma(before + n) - math.lgamma(before or 1)
            if not before:
                self._log_loss += _LOSS_OF_A_NEW_CLASS - math.log(self._n + int((targets == one).argmax()))

    def _count_each(self, targets: np.ndarray, here: Counter[int]) -> None:
        """Predict each class where another one may become the most frequent."""
        # The classes past the limit are many. Of others that came equally often, the one that came first wins.
        classes = np.array(sorted({*here, self._best} - {OTHER}), np.int64)
        came = targets[:, None] == classes
        before = np.array([self._targets[one] for one in classes.tolist()]) + np.cumsum(came, axis=0) - came
        self._targets.update(here)
        guesses = np.full(len(targets), OTHER)
        if len(classes):
            guesses = np.where(before.max(axis=1) > 0, classes[before.argmax(axis=1)], OTHER)
            self._best = max(classes.tolist(), key=self._targets.__getitem__)
        self._predictions.update(_counted(guesses))
        self._correct.update(_counted(targets[targets == guesses]))
        del self._correct[OTHER]


class MeanSoFar:
    """Predicts the mean of the targets so far: River's `StatisticRegressor`, which has 0 for the first one.

    Examples
    --------
    >>> baseline = MeanSoFar()
    >>> baseline.add(np.array([1.0, 3.0, 5.0]))
    >>> baseline.get("mae")
    2.5

    """

    def __init__(self) -> None:
        self._n = 0
        self._sum = 0.0
        self._absolute = stats.Mean()
        self._squared = stats.Mean()

    def add(self, targets: np.ndarray) -> None:
        """Predict each target, then add it."""
        values = np.clip(targets, -LARGEST, LARGEST)
        sums = np.cumsum(np.append(self._sum, values))  # one by one, however they are cut
        first = 0 if self._n else 1
        errors = values[first:] - sums[first:-1] / np.arange(self._n + first, self._n + len(values))
        self._n, self._sum = self._n + len(values), float(sums[-1])
        if len(errors):
            self._absolute.update_many(np.abs(errors))
            self._squared.update_many(errors * errors)

    def get(self, name: str) -> float:
        """Return a metric by its name in the configuration; NaN before the second record, and for R2."""
        if not self._absolute.n or name == "r2":  # R2 compares with a mean by itself
            return math.nan
        return float(self._absolute.get()) if name == "mae" else math.sqrt(float(self._squared.get()))
