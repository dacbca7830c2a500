"""Calibration of the predictions: how far probabilities and deviations can be taken at their word.

A few records of each chunk are looked at, at even distances, so that what a chunk costs does not go with its length.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamkernel.daemon.stream.record_batch import Labeled
from streamkernel.records.results import LabelDistributions

__all__ = ["LEVEL", "SAMPLED", "Calibration", "CalibrationError", "IntervalCoverage", "make_calibration"]

SAMPLED = 128
"""The most records of a chunk that are looked at."""
LEVEL = 0.9
"""The share of the targets that is to be expected in an interval."""

# Of a standard normal variable: 90% of it is not farther from 0 than this.
_QUANTILE = 1.6448536269514722
# The upper ends of all bins but the last one, each of which belongs to its bin.
_ENDS = np.arange(1, 10) / 10


class Calibration(ABC):
    """A figure of calibration over the last sampled records, fed by the chunk; nothing of it is in a checkpoint.

    Parameters
    ----------
    window
        How many sampled records it looks back.

    """

    def __init__(self, window: int) -> None:
        self._window: deque[Any] = deque(maxlen=window)

    def add(self, labeled: Labeled) -> None:
        """Take in at most `SAMPLED` of the records of a chunk whose targets are known."""
        n = len(labeled.targets)
        self._window.extend(self._kept(labeled, slice(0, n, max(1, -(-n // SAMPLED)))))

    @abstractmethod
    def value(self) -> float:
        """Return the figure, NaN before the first record."""

    @abstractmethod
    def _kept(self, labeled: Labeled, places: slice) -> Iterator[Any]:
        """Yield what is kept of some records; nothing where a prediction says nothing of how sure it is."""


class CalibrationError(Calibration):
    """The expected calibration error of a classifier.

    That is the mean, over ten bins of the probability of the predicted label, of the distance between this probability
    and the share of predictions that are right, weighed by the number of records in the bin.

    Examples
    --------
    >>> error = CalibrationError(window=100)
    >>> error.add(Labeled(targets=["a", "b"], predictions=["a", "a"], probabilities=[{"a": 0.75, "b": 0.25}] * 2))
    >>> error.value()
    0.25

    """

    def value(self) -> float:
        if not self._window:
            return math.nan
        given, right = np.array(self._window, float).T
        bins = np.searchsorted(_ENDS, given)
        distances = np.bincount(bins, weights=given) - np.bincount(bins, weights=right)
        return float(np.abs(distances).sum()) / len(given)

    def _kept(self, labeled: Labeled, places: slice) -> Iterator[tuple[float, bool]]:
        labels, given = labeled.predictions[places], labeled.probabilities
        if isinstance(given, LabelDistributions):
            probabilities = given.given(labels, places).tolist()
        else:
            said = zip(labels, (given or ())[places], strict=False)
            probabilities = [float(one.get(label, 0.0)) if one else math.nan for label, one in said]
        for label, probability, target in zip(labels, probabilities, labeled.targets[places], strict=False):
            if label is not None and 0.0 <= probability <= math.inf:  # NaN is none
                yield min(probability, 1.0), bool(label == target)


class IntervalCoverage(Calibration):
    """The share of the targets that lie within the central 90% of a Gaussian around the prediction.

    Examples
    --------
    >>> coverage = IntervalCoverage(window=100)
    >>> coverage.add(Labeled(targets=[1.0, 3.0], predictions=[0.0, 0.0], deviations=np.ones(2)))
    >>> coverage.value()
    0.5

    """

    def value(self) -> float:
        return sum(self._window) / len(self._window) if self._window else math.nan

    def _kept(self, labeled: Labeled, places: slice) -> Iterator[bool]:
        if labeled.deviations is None:
            return
        rows = zip(labeled.targets[places], labeled.predictions[places], labeled.deviations[places], strict=True)
        for target, prediction, deviation in rows:
            if prediction is not None and not math.isnan(deviation):
                yield bool(abs(float(target) - prediction) <= _QUANTILE * deviation)


def make_calibration(task: str, window: int) -> Calibration | None:
    """Return the figure of calibration of a task; None where predictions are no labels or numbers to compare."""
    kinds: dict[str, type[Calibration]] = {"classification": CalibrationError, "regression": IntervalCoverage}
    return kinds[task](window) if task in kinds else None
