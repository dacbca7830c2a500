"""Report metrics: River's, over everything and over the last records, fed by the chunk.

Metrics are updated per chunk: those of classes by counts, a mean by an array. One `update` a record and metric would
cost more than learning the record. A confusion matrix would grow with each pair of labels; counts grow with the
classes, which are limited.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from river import stats

from streamkernel.daemon.stream.baseline import Baseline, MajorityClass, MeanSoFar
from streamkernel.daemon.stream.classes import NONE, OTHER, ClassNumbers, macro_f1
from streamkernel.finite import LARGEST, clamped, finite_mean, finite_sum
from streamkernel.records.results import LabelDistributions

__all__ = ["REPORTS", "TALLIES", "ProgressiveLoss", "Quality", "SeveralQuality", "log_losses"]

REPORTS: dict[str, tuple[Literal["accuracy", "macro_f1", "log_loss", "mae", "rmse", "r2", "flagged"], ...]] = {
    "classification": ("accuracy", "macro_f1", "log_loss"),
    "regression": ("mae", "rmse", "r2"),
    "novelty": ("flagged",),
    "density_ratio": (),
    "several_labels": ("accuracy", "macro_f1", "log_loss"),
    "several_numbers": ("mae", "rmse", "r2"),
}
_SMALLEST_PROBABILITY = 1e-15


def log_losses(targets: Sequence[Any], probabilities: Sequence[Mapping[Any, float]]) -> np.ndarray:
    """Return the log-loss of each record.

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
    if isinstance(probabilities, LabelDistributions):
        given = probabilities.given(targets)
    else:
        given = np.array([p.get(y, 0.0) for y, p in zip(targets, probabilities, strict=True)], float)
    losses: np.ndarray = -np.log(np.clip(given, _SMALLEST_PROBABILITY, 1.0))
    return losses


class _Classification:
    """Counts by class: its number or its label; `NONE` is a prediction past the limit that is wrong."""

    def __init__(self) -> None:
        self._correct: Counter[int] = Counter()
        self._targets: Counter[int] = Counter()
        self._predictions: Counter[int] = Counter()
        self._log_loss = stats.Mean()

    def add(self, targets: Any, predictions: Any, losses: np.ndarray) -> None:
        """Add targets, predictions, and the log-loss or NaN of each; arrays hold numbers of classes."""
        if isinstance(targets, np.ndarray):
            pairs, n = np.unique((targets << 32) + (predictions - NONE), return_counts=True)
            targets, predictions, counts = (pairs >> 32).tolist(), (pairs % 2**32 + NONE).tolist(), n.tolist()
        else:
            counts = [1] * len(targets)
        for target, prediction, count in zip(targets, predictions, counts, strict=True):
            self._targets[target] += count
            self._predictions[OTHER if prediction == NONE else prediction] += count
            if target == prediction:
                self._correct[target] += count
        losses = losses[~np.isnan(losses)]
        if len(losses):
            self._log_loss.update_many(losses)

    def merge(self, other: _Classification) -> None:
        """Add the records of another one."""
        self._correct.update(other._correct)
        self._targets.update(other._targets)
        self._predictions.update(other._predictions)
        if other._log_loss.n:
            self._log_loss += other._log_loss

    def get(self, name: str) -> float:
        """Return a metric by its name in the configuration."""
        if name == "log_loss":
            return float(self._log_loss.get()) if self._log_loss.n else math.nan
        if not self._targets:
            return math.nan
        if name == "accuracy":
            return self._correct.total() / self._targets.total()
        return macro_f1(self._correct, self._targets, self._predictions)


class _Regression:
    """Means of errors."""

    def __init__(self) -> None:
        self._absolute = stats.Mean()
        self._squared = stats.Mean()
        self._mean = 0.0
        self._variance = 0.0

    def add(self, targets: Any, predictions: Any, losses: np.ndarray) -> None:  # noqa: ARG002 - a number has none
        if not len(targets):
            return
        targets, predictions = np.clip(np.array([targets, predictions], float), -LARGEST, LARGEST)
        errors = targets - predictions
        self._add_targets(len(targets), float(targets.mean()), float(targets.var()))
        self._absolute.update_many(np.abs(errors))
        self._squared.update_many(errors * errors)

    def _add_targets(self, n: float, mean: float, variance: float) -> None:
        # Means of squares, never their sum, which overflows.
        share = n / (self._absolute.n + n)
        delta = mean - self._mean
        self._mean += share * delta
        self._variance += share * (variance - self._variance + (1.0 - share) * delta * delta)

    def merge(self, other: _Regression) -> None:
        if other._absolute.n:
            self._add_targets(other._absolute.n, other._mean, other._variance)
            self._absolute += other._absolute
            self._squared += other._squared

    def get(self, name: str) -> float:
        if not self._absolute.n:
            return math.nan
        if name == "mae":
            return float(self._absolute.get())
        squared = float(self._squared.get())
        if name == "rmse":
            return math.sqrt(squared)
        return clamped(1.0 - squared / self._variance) if self._variance > 0 else 0.0


class _Scored:
    """Counts of scores; targets are whatever belongs to the records."""

    def __init__(self) -> None:
        self._count = 0
        self._above = 0

    def add(self, targets: Any, predictions: Any, losses: np.ndarray) -> None:  # noqa: ARG002 - a score has none
        self._count += len(predictions)
        self._above += int((np.asarray(predictions) > 0).sum())

    def merge(self, other: _Scored) -> None:
        self._count += other._count
        self._above += other._above

    def get(self, name: str) -> float:  # noqa: ARG002 - there is only one, the share of novelties
        return self._above / self._count if self._count else math.nan


_BASELINES: dict[str, type[Baseline]] = {"classification": MajorityClass, "regression": MeanSoFar}
#: Counts and means that the report metrics of a task need of its records.
TALLIES: dict[str, type[_Classification | _Regression | _Scored]] = {
    "classification": _Classification,
    "regression": _Regression,
    "novelty": _Scored,
    "density_ratio": _Scored,
}


class Quality:
    """The report metrics of a stream, over all its records and over the last ones.

    Parameters
    ----------
    task
        One of those in `REPORTS`.
    names
        The metrics, of `REPORTS`.
    window
        How many labeled records the rolling ones look back.
    max_classes
        How many classes have a number of their own; those past it count as one.

    Examples
    --------
    >>> quality = Quality("classification", ["accuracy"], window=2)
    >>> quality.add(["a", "b", "b", "b"], ["b", "b", "b", "b"], None)
    >>> quality.overall(), quality.rolling()
    ({'accuracy': 0.75}, {'accuracy': 1.0})

    """

    def __init__(self, task: str, names: Sequence[str], window: int, max_classes: int = 1000) -> None:
        self._make = TALLIES[task]
        self._tally = self._make()
        self._baseline = _BASELINES[task]() if task in _BASELINES else None
        #: Targets, predictions and log-losses.
        self._last: deque[tuple[float, float, float]] = deque(maxlen=window)
        self._wants_log_loss = "log_loss" in names
        self._classes = ClassNumbers(max_classes)
        self.names = tuple(names)
        self.of_numbers = task != "classification"
        self.window = window

    def add(self, targets: Sequence[Any], predictions: Any, probabilities: Sequence[Any] | None) -> None:
        """Take in labeled records; one that got no prediction yet (no class was known) is left out, as in River."""
        if not len(targets):
            return
        losses = np.full(len(targets), math.nan)
        if self._wants_log_loss and probabilities is not None:
            losses = log_losses(targets, probabilities)
        if self.of_numbers:  # whatever the target of a score is, nothing compares them
            guessed = np.array(predictions, float)
            found = guessed if self._baseline is None else np.array(targets, float)
        else:
            found, guessed = self._classes.of(targets), self._classes.of(predictions)
            for row in np.flatnonzero((found == OTHER) & (guessed == OTHER)).tolist():
                if targets[row] != predictions[row]:
                    guessed[row] = NONE
        if self._baseline is not None:
            self._baseline.add(found)
        if not isinstance(predictions, np.ndarray) and None in predictions:
            kept = np.array([prediction is not None for prediction in predictions])
            found, guessed, losses = found[kept], guessed[kept], losses[kept]
        self._tally.add(found, guessed, losses)
        last = slice(-self.window, None)
        self._last.extend(zip(found[last].tolist(), guessed[last].tolist(), losses[last].tolist(), strict=True))

    def overall(self) -> dict[str, float]:
        """Return each metric over all records; NaN before the first."""
        return {name: self._tally.get(name) for name in self.names}

    def baseline(self) -> dict[str, float]:
        """Return each metric that a baseline has over all records: the most frequent class or the mean so far."""
        found = {} if self._baseline is None else {name: self._baseline.get(name) for name in self.names}
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def rolling(self) -> dict[str, float]:
        """Return each metric over the window, computed again: nothing drifts, nothing is paid until it is asked for."""
        tally = self._make()
        found, guessed, losses = zip(*self._last, strict=True) if self._last else ((), (), ())
        tally.add(found, guessed, np.array(losses, float))
        return {name: tally.get(name) for name in self.names}

    def overall_of_targets(self) -> dict[str, dict[str, float]]:
        """Return each metric of each of several targets over all records; nothing where there is one."""
        return {}

    def rolling_of_targets(self) -> dict[str, dict[str, float]]:
        """Return each metric of each of several targets over the window; nothing where there is one."""
        return {}


class ProgressiveLoss:
    """The mean of the loss over the last labeled records, each taken before it was learned.

    Parameters
    ----------
    window
        How many records it looks back.

    Attributes
    ----------
    count, sum
        Of all finite losses so far.
    n_not_finite
        Losses that were not finite, of which no mean can be taken.

    Examples
    --------
    >>> loss = ProgressiveLoss(2)
    >>> loss.add([4.0, 1.0, float("nan"), 2.0], n_not_finite=1)
    >>> loss.mean(), loss.count, loss.sum, loss.n_not_finite
    (1.5, 3, 7.0, 1)

    """

    def __init__(self, window: int) -> None:
        self._window: deque[float] = deque(maxlen=window)
        self.count = 0
        self.sum = 0.0
        self.n_not_finite = 0

    def add(self, losses: Sequence[float] | np.ndarray, n_not_finite: int = 0) -> None:
        """Take in the losses of a chunk, of which what is not finite is left out, and the number of those left out."""
        self.n_not_finite += n_not_finite
        seen = np.asarray(losses, float)
        finite = seen[np.isfinite(seen)].tolist()
        self._window.extend(finite)
        self.count += len(finite)
        self.sum = clamped(self.sum + finite_sum(finite))

    def mean(self) -> float:
        """Return the mean over the window, NaN before the first loss."""
        return finite_mean(self._window)


class SeveralQuality(Quality):
    """The report metrics of several targets, which are the means over the targets, as River's `MacroAverage` has them.

    Parameters
    ----------
    task
        That of each target.
    names, window
        As `Quality` takes them.

    Examples
    --------
    >>> quality = SeveralQuality("regression", ["mae"], window=2)
    >>> quality.add([{"a": 1.0, "b": 5.0}, {"a": 2.0}], [{"a": 2.0, "b": 2.0}, {"a": 2.0, "b": 0.0}], None)
    >>> quality.overall(), {name: one["mae"] for name, one in quality.rolling_of_targets().items()}
    ({'mae': 1.75}, {'a': 0.5, 'b': 3.0})

    """

    def __init__(self, task: str, names: Sequence[str], window: int) -> None:
        super().__init__(task, names, window)
        self._task = task
        self._of_targets: dict[str, Quality] = {}

    def add(self, targets: Sequence[Any], predictions: Any, probabilities: Any) -> None:
        """Take in labeled records, each with the targets that it has."""
        for name in dict.fromkeys(name for y in targets for name in y):
            rows = [row for row, y in enumerate(targets) if y.get(name) is not None]
            if not rows:
                continue
            if name not in self._of_targets:
                self._of_targets[name] = Quality(self._task, self.names, self.window)
            self._of_targets[name].add(
                [targets[row][name] for row in rows],
                [(predictions[row] or {}).get(name) for row in rows],
                None if probabilities is None else [(probabilities[row] or {}).get(name, {}) for row in rows],
            )

    def overall(self) -> dict[str, float]:
        """Return the mean of each metric over the targets, over all records; NaN before the first."""
        return self._means(Quality.overall)

    def baseline(self) -> dict[str, float]:
        """Return the mean of each metric that the baselines of the targets have."""
        found = self._means(Quality.baseline)
        return {name: value for name, value in found.items() if value == value}

    def rolling(self) -> dict[str, float]:
        """Return the mean of each metric over the targets, over the window."""
        return self._means(Quality.rolling)

    def overall_of_targets(self) -> dict[str, dict[str, float]]:
        """Return each metric of each target over all records."""
        return {name: one.overall() for name, one in self._of_targets.items()}

    def rolling_of_targets(self) -> dict[str, dict[str, float]]:
        """Return each metric of each target over the window."""
        return {name: one.rolling() for name, one in self._of_targets.items()}

    def _means(self, figures: Callable[[Quality], dict[str, float]]) -> dict[str, float]:
        of_each = [figures(one) for one in self._of_targets.values()]
        return {name: finite_mean([one[name] for one in of_each if name in one]) for name in self.names}
