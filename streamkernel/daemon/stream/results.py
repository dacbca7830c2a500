"""Results of a model, cut to some of their rows, joined, spread, and freed of what is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from streamkernel.estimators.base import AdvanceResult

__all__ = ["finite", "joined", "part_of", "spread"]


def part_of(result: AdvanceResult, chosen: Sequence[bool]) -> AdvanceResult:
    """Return the results of the chosen rows.

    Examples
    --------
    >>> part = part_of(AdvanceResult([1.0, 2.0], None, np.zeros(2), np.array([0.1, 0.2])), [False, True])
    >>> part.predictions, part.probabilities, part.deviations
    ([2.0], None, array([0.2]))

    """
    probabilities = None if result.probabilities is None else list(compress(result.probabilities, chosen))
    rows = np.flatnonzero(chosen)
    deviations = None if result.deviations is None else result.deviations[rows]
    return AdvanceResult(list(compress(result.predictions, chosen)), probabilities, result.losses[rows], deviations)


def spread(result: AdvanceResult, chosen: Sequence[bool]) -> AdvanceResult:
    """Return the results of the chosen rows at their places among all rows; None and NaN elsewhere.

    Examples
    --------
    >>> wide = spread(AdvanceResult([1.0], None, np.zeros(1)), [False, True])
    >>> wide.predictions, wide.losses
    ([None, 1.0], array([nan,  0.]))

    """
    labels: list[Any] = [None] * len(chosen)
    probabilities: list[Any] | None = None if result.probabilities is None else [{} for _ in chosen]
    rows = np.flatnonzero(chosen).tolist()
    for row, place in enumerate(rows):
        labels[place] = result.predictions[row]
        if probabilities is not None and result.probabilities is not None:
            probabilities[place] = result.probabilities[row]
    losses = np.full(len(chosen), math.nan)
    losses[rows] = result.losses
    deviations = None
    if result.deviations is not None:
        deviations = np.full(len(chosen), math.nan)
        deviations[rows] = result.deviations
    return AdvanceResult(labels, probabilities, losses, deviations)


def joined(parts: Sequence[AdvanceResult], classifies: bool) -> AdvanceResult:
    """Join results of one row each; a refused row has neither probabilities nor a deviation."""
    deviations = None
    if any(part.deviations is not None for part in parts):
        deviations = np.array([math.nan if part.deviations is None else part.deviations[0] for part in parts])
    return AdvanceResult(
        [part.predictions[0] for part in parts],
        [part.probabilities[0] if part.probabilities else {} for part in parts] if classifies else None,
        np.array([part.losses[0] for part in parts]),
        deviations,
    )


def finite(result: AdvanceResult) -> tuple[AdvanceResult, int]:
    """Replace predictions and deviations that are not finite by None and NaN, and return how many rows had any.

    Examples
    --------
    >>> result, n_not_finite = finite(AdvanceResult([1.0, float("inf")], None, np.zeros(2)))
    >>> result.predictions, n_not_finite
    ([1.0, None], 1)

    """
    wrong: set[int] = set()
    labels, probabilities, deviations = result.predictions, result.probabilities, result.deviations
    # One sum tells whether all of them are finite: not one chunk in millions has anything else.
    if labels and type(labels[0]) is dict:  # of several targets
        found = [list(_numbers(one)) for one in (labels if probabilities is None else probabilities)]
        wrong.update(place for place, one in enumerate(found) if not math.isfinite(sum(one)))
        labels = [None if place in wrong else one for place, one in enumerate(labels)]
    elif probabilities is not None:
        sums = [sum(one.values()) for one in probabilities]
        if not math.isfinite(sum(sums)):
            wrong.update(place for place, one in enumerate(sums) if not math.isfinite(one))
    elif not math.isfinite(sum([one for one in labels if type(one) is float])):
        wrong.update(place for place, one in enumerate(labels) if _not_finite(one))
        labels = [None if _not_finite(one) else one for one in labels]
    if deviations is not None and (infinite := np.flatnonzero(deviations == math.inf)).size:
        wrong.update(infinite.tolist())
        deviations = np.where(deviations == math.inf, math.nan, deviations)
    return (replace(result, predictions=labels, deviations=deviations) if wrong else result), len(wrong)


def _numbers(one: Any) -> Iterator[float]:
    """Yield the numbers in a prediction of several targets."""
    for value in one.values() if isinstance(one, dict) else ():
        yield from value.values() if isinstance(value, dict) else (value,)


def _not_finite(prediction: Any) -> bool:
    return type(prediction) is float and not math.isfinite(prediction)
