"""How good the predictions are: River's metrics over everything and over the last records, fed by the chunk.

Metrics are updated per chunk: a confusion matrix by its counts, a mean by an array. One `update` a record and metric
would cost more than learning the record.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Literal

import numpy as np
from river import metrics, stats

__all__ = ["REPORTS", "ProgressiveLoss", "Quality", "log_losses"]

REPORTS: dict[str, tuple[Literal["accuracy", "macro_f1", "log_loss", "mae", "rmse", "r2"], ...]] = {
    "classification": ("accuracy", "macro_f1", "log_loss"),
    "regression": ("mae", "rmse", "r2"),
}
_SMALLEST_PROBABILITY = 1e-15


def log_losses(targets: Sequence[Any], probabilities: Sequence[Mapping[Any, float]]) -> np.ndarray:
    """Give the log-loss of each record.

    Parameters
    ----------
    targets
        The labels that came.
    probabilities
        What each was given; a label that is not in it had probability 0, which counts as 1e-15.

    Returns
    -------
    losses
        Shape (n,), natural logarithm.

    Examples
    --------
    >>> log_losses(["a", "b"], [{"a": 0.5, "b": 0.5}, {"a": 1.0}]).round(3).tolist()
    [0.693, 34.539]

    """
    given: np.ndarray = np.array([p.get(y, 0.0) for y, p in zip(targets, probabilities, strict=True)], float)
    losses: np.ndarray = -np.log(np.clip(given, _SMALLEST_PROBABILITY, 1.0))
    return losses


class _Tally(ABC):
    """The metrics of a set of records."""

    @abstractmethod
    def add(self, pairs: Sequence[tuple[Any, Any]], losses: np.ndarray) -> None:
        """Take in pairs of target and prediction, and the log-loss or NaN of each."""

    @abstractmethod
    def get(self, name: str) -> float:
        """Give a metric by its name in the configuration."""


class _Classification(_Tally):
    def __init__(self) -> None:
        matrix = metrics.ConfusionMatrix()
        self._matrix = matrix
        self._labels: dict[str, Any] = {
            "accuracy": metrics.Accuracy(matrix),
            "macro_f1": metrics.MacroF1(matrix),
        }
        self._log_loss = stats.Mean()

    def add(self, pairs: Sequence[tuple[Any, Any]], losses: np.ndarray) -> None:
        for (target, prediction), count in Counter(pairs).items():
            self._matrix.update(target, prediction, count)
        losses = losses[~np.isnan(losses)]
        if len(losses):
            self._log_loss.update_many(losses)

    def get(self, name: str) -> float:
        if name == "log_loss":
            return float(self._log_loss.get()) if self._log_loss.n else math.nan
        return float(self._labels[name].get()) if self._matrix.total_weight else math.nan


class _Regression(_Tally):
    def __init__(self) -> None:
        self._absolute = stats.Mean()
        self._squared = stats.Mean()
        self._target = stats.Var()

    def add(self, pairs: Sequence[tuple[Any, Any]], losses: np.ndarray) -> None:  # noqa: ARG002 - a number has none
        if not pairs:
            return
        table = np.array(pairs, dtype=float)
        errors = table[:, 0] - table[:, 1]
        self._absolute.update_many(np.abs(errors))
        self._squared.update_many(errors * errors)
        self._target.update_many(table[:, 0])

    def get(self, name: str) -> float:
        n = self._absolute.n
        if not n:
            return math.nan
        if name == "mae":
            return float(self._absolute.get())
        squared = float(self._squared.get())
        if name == "rmse":
            return math.sqrt(squared)
        spread = (n - 1) * float(self._target.get())
        return 1.0 - n * squared / spread if spread > 0 else 0.0


class Quality:
    """The report metrics of a stream, over all its records and over the last ones.

    Parameters
    ----------
    task
        ``"classification"`` or ``"regression"``.
    names
        The metrics, of `REPORTS`.
    window
        How many labelled records the rolling ones look back.

    Examples
    --------
    >>> quality = Quality("classification", ["accuracy"], window=2)
    >>> quality.add(["a", "b", "b", "b"], ["b", "b", "b", "b"], None)
    >>> quality.overall(), quality.rolling()
    ({'accuracy': 0.75}, {'accuracy': 1.0})

    """

    def __init__(self, task: str, names: Sequence[str], window: int) -> None:
        self._make = _Classification if task == "classification" else _Regression
        self._tally: _Tally = self._make()
        self._pairs: deque[tuple[Any, Any]] = deque(maxlen=window)
        self._losses: deque[float] = deque(maxlen=window)
        self._wants_log_loss = "log_loss" in names
        self.names = tuple(names)
        self.of_numbers = task == "regression"
        self.window = window

    def add(
        self, targets: Sequence[Any], predictions: Sequence[Any], probabilities: Sequence[Mapping[Any, float]] | None
    ) -> None:
        """Take in labelled records; one that got no prediction yet (no class was known) is left out, as in River."""
        pairs = list(zip(targets, predictions, strict=True))
        if self._wants_log_loss and probabilities is not None:
            losses = log_losses(targets, probabilities)
        else:
            losses = np.full(len(pairs), math.nan)
        if None in predictions:
            kept = [prediction is not None for prediction in predictions]
            pairs = list(compress(pairs, kept))
            losses = losses[kept]
        self._tally.add(pairs, losses)
        self._pairs.extend(pairs)
        self._losses.extend(losses.tolist())

    def overall(self) -> dict[str, float]:
        """Give each metric over all records; NaN before the first."""
        return {name: self._tally.get(name) for name in self.names}

    def rolling(self) -> dict[str, float]:
        """Give each metric over the window, computed anew: nothing drifts, nothing is paid until it is asked for."""
        tally = self._make()
        tally.add(list(self._pairs), np.array(self._losses))
        return {name: tally.get(name) for name in self.names}


class ProgressiveLoss:
    """The mean of the model's own loss over the last labelled records, each taken before it was learnt.

    Parameters
    ----------
    window
        How many records it looks back.

    Examples
    --------
    >>> loss = ProgressiveLoss(2)
    >>> loss.add([4.0, 1.0, float("nan"), 2.0])
    >>> loss.mean(), loss.count, loss.sum
    (1.5, 3, 7.0)

    """

    def __init__(self, window: int) -> None:
        self._window: deque[float] = deque(maxlen=window)
        self.count = 0
        self.sum = 0.0

    def add(self, losses: Iterable[float]) -> None:
        """Take in the losses of a chunk, NaN where there was no label."""
        seen = [loss for loss in losses if loss == loss]
        self._window.extend(seen)
        self.count += len(seen)
        self.sum += math.fsum(seen)

    def mean(self) -> float:
        """Give the mean over the window, NaN before the first loss."""
        return math.fsum(self._window) / len(self._window) if self._window else math.nan
