"""The result of a chunk of events that went through the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np

from streamkernel.estimators.base import AdvanceResult

__all__ = ["Learned", "Measured", "part_of"]


@dataclass(slots=True)
class Measured:
    """What was counted and measured while events went through the model.

    Attributes
    ----------
    predict_seconds, learn_seconds
        Seconds an event, or None where they were not measured.
    n_not_finite
        Events of which a prediction, a probability or a deviation was no finite number. A prediction that is none is
        None.
    n_clipped
        Targets so large that their squares overflow: they were learned as the largest whose square does not.
    n_ignored_inputs
        Inputs of events that were learned without them, for their names came past the limit of the daemon.
    n_ignored
        Events that were not learned, for their class came past the model's limit; they count as unlabeled.

    """

    predict_seconds: float | None = None
    learn_seconds: float | None = None
    n_not_finite: int = 0
    n_clipped: int = 0
    n_ignored_inputs: int = 0
    n_ignored: int = 0

    def add(self, other: Measured) -> None:
        """Add the counts of more events; of the seconds, the first ones measured stay."""
        self.predict_seconds = self.predict_seconds or other.predict_seconds
        self.learn_seconds = self.learn_seconds or other.learn_seconds
        self.n_not_finite += other.n_not_finite
        self.n_clipped += other.n_clipped
        self.n_ignored_inputs += other.n_ignored_inputs
        self.n_ignored += other.n_ignored


@dataclass(slots=True)
class Learned(Measured):
    """The predictions of events, those that were refused, and what was counted and measured on the way.

    Attributes
    ----------
    result
        The predictions, as long as what was done of the events; None and NaN where an event was refused.
    refused
        A short code and a sentence why the model cannot take an event, by its place.
    stopped
        Whether the events after these were left for a stop that was asked for.
    others
        By its name, the predictions of each other model, as long as `result`; None and NaN where it has none.
    failure
        What the first event without a prediction raised, where that was caught; nothing came after it.

    """

    result: AdvanceResult = field(default_factory=lambda: AdvanceResult([], None, np.zeros(0)))
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)
    stopped: bool = False
    others: dict[str, AdvanceResult] = field(default_factory=dict)
    failure: BaseException | None = None

    def drop_not_finite(self) -> None:
        """Take predictions and deviations that are no finite numbers out of the result, and count their events.

        Examples
        --------
        >>> learned = Learned(result=AdvanceResult([1.0, float("inf")], None, np.zeros(2)))
        >>> learned.drop_not_finite()
        >>> learned.result.predictions, learned.n_not_finite
        ([1.0, None], 1)

        """
        wrong: set[int] = set()
        labels, probabilities, deviations = self.result.predictions, self.result.probabilities, self.result.deviations
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
        if wrong:
            self.result = replace(self.result, predictions=labels, deviations=deviations)
        self.n_not_finite = len(wrong)


def part_of(result: AdvanceResult, chosen: Sequence[bool]) -> AdvanceResult:
    """Return the predictions of some of the records.

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


def _numbers(one: Any) -> Iterator[float]:
    """Yield the numbers in a prediction of several targets."""
    for value in one.values() if isinstance(one, dict) else ():
        yield from value.values() if isinstance(value, dict) else (value,)


def _not_finite(prediction: Any) -> bool:
    return type(prediction) is float and not math.isfinite(prediction)
