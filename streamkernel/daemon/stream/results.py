"""Results of a model, cut to some of their rows, joined, spread, and freed of what is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from streamkernel.estimators.base import AdvanceResult

__all__ = ["finite", "joined", "part_of", "spread", "taken"]


def part_of(result: AdvanceResult, chosen: Sequence[bool]) -> AdvanceResult:
    """Return the results of the chosen rows.

    Examples
    --------
    >>> part = part_of(AdvanceResult([1.0, 2.0], None, np.zeros(2), np.array([0.1, 0.2])), [False, True])
    >>> part.predictions, part.probabilities, part.deviations
    ([2.0], None, array([0.2]))

    """
    return taken(result, np.flatnonzero(chosen))


def taken(result: AdvanceResult, rows: Sequence[int] | np.ndarray) -> AdvanceResult:
    """Return the results of some rows, in their order."""
    rows = np.asarray(rows, np.int64)
    deviations = None if result.deviations is None else result.deviations[rows]
    if result.numbers is not None:
        return AdvanceResult(result.numbers[rows], None, result.losses[rows], deviations)
    if result.distributions is not None:
        return AdvanceResult(None, result.distributions.part(rows), result.losses[rows], deviations)
    places, given = rows.tolist(), result.probabilities
    probabilities = None if given is None else [given[place] for place in places]
    return AdvanceResult(
        [result.predictions[place] for place in places], probabilities, result.losses[rows], deviations
    )


def spread(result: AdvanceResult, chosen: Sequence[bool]) -> AdvanceResult:
    """Return the results of the chosen rows at their places among all rows; None and NaN elsewhere, thus in lists.

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
    labels: Any = None
    deviations = result.deviations
    values = result.numbers if result.distributions is None else result.distributions.table
    if values is None:
        labels = _finite_labels(result, wrong)
    elif not (right := np.isfinite(values)).all():
        wrong.update(np.flatnonzero(~right.reshape(len(right), -1).all(axis=1)).tolist())
    if result.numbers is not None:
        labels = result.numbers
    if result.numbers is not None and wrong:
        labels = [None if place in wrong else one for place, one in enumerate(result.predictions)]
    if deviations is not None and (infinite := np.flatnonzero(deviations == math.inf)).size:
        wrong.update(infinite.tolist())
        deviations = np.where(deviations == math.inf, math.nan, deviations)
    if not wrong:
        return result, 0
    given = result.probabilities if result.distributions is None else result.distributions
    return AdvanceResult(labels, given, result.losses, deviations), len(wrong)


def _finite_labels(result: AdvanceResult, wrong: set[int]) -> list[Any]:
    """Return predictions without those that are not finite, and add the rows of what is not finite to `wrong`."""
    labels, probabilities = result.predictions, result.probabilities
    # One sum tells whether all of them are finite: not one chunk in millions has anything else.
    if labels and type(labels[0]) is dict:  # of several targets
        found = [list(_numbers(one)) for one in (labels if probabilities is None else probabilities)]
        wrong.update(place for place, one in enumerate(found) if not math.isfinite(sum(one)))
        return [None if place in wrong else one for place, one in enumerate(labels)]
    if probabilities is not None:
        sums = [sum(one.values()) for one in probabilities]
        if not math.isfinite(sum(sums)):
            wrong.update(place for place, one in enumerate(sums) if not math.isfinite(one))
    elif not math.isfinite(sum([one for one in labels if type(one) is float])):
        wrong.update(place for place, one in enumerate(labels) if _not_finite(one))
        return [None if _not_finite(one) else one for one in labels]
    return labels


def _numbers(one: Any) -> Iterator[float]:
    """Yield the numbers in a prediction of several targets."""
    for value in one.values() if isinstance(one, dict) else ():
        yield from value.values() if isinstance(value, dict) else (value,)


def _not_finite(prediction: Any) -> bool:
    return type(prediction) is float and not math.isfinite(prediction)
