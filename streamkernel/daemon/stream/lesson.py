"""What a model said to records before it learnt them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

__all__ = ["Lesson"]


@dataclass(slots=True)
class Lesson:
    """What a model said to a chunk of records.

    Attributes
    ----------
    predictions
        One a record, None where the model had none to give (no class known yet, or refused).
    probabilities
        One mapping a record for classifiers that give them, else None.
    losses
        The model's own loss before it learnt the record; NaN without a label.
    refused
        A short code and a sentence why the model cannot take a record, by its place in the chunk.
    predict_seconds, learn_seconds
        Seconds a record, or None where they were not measured.
    deviations
        The standard deviation of each prediction, for regressors with a distribution; NaN where it has none.
    n_not_finite
        Records of which a prediction, a probability or a deviation was no finite number. A prediction that is none is
        None.
    n_clipped
        Targets so large that their squares overflow: they were learnt as the largest whose square does not.
    n_ignored_inputs
        Inputs of records that were learnt without them, for their names came past the limit of the daemon.

    """

    predictions: list[Any] = field(default_factory=list)
    probabilities: list[Mapping[Any, float]] | None = None
    losses: list[float] = field(default_factory=list)
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)
    predict_seconds: float | None = None
    learn_seconds: float | None = None
    deviations: list[float] | None = None
    n_not_finite: int = 0
    n_clipped: int = 0
    n_ignored_inputs: int = 0

    def part(self, chosen: Sequence[bool]) -> Lesson:
        """Give what was said to some of the records: predictions, probabilities and deviations.

        Examples
        --------
        >>> part = Lesson([1.0, 2.0], deviations=[0.1, 0.2]).part([False, True])
        >>> part.predictions, part.probabilities, part.deviations
        ([2.0], None, [0.2])

        """
        probabilities = None if self.probabilities is None else list(compress(self.probabilities, chosen))
        deviations = None if self.deviations is None else list(compress(self.deviations, chosen))
        return Lesson(list(compress(self.predictions, chosen)), probabilities, deviations=deviations)

    def sift(self) -> None:
        """Take out what is no finite number, and count it.

        Examples
        --------
        >>> lesson = Lesson([1.0, float("inf")])
        >>> lesson.sift()
        >>> lesson.predictions, lesson.n_not_finite
        ([1.0, None], 1)

        """
        wrong: set[int] = set()
        # One sum tells whether all of them are finite: not one chunk in millions has anything else.
        if self.probabilities is not None:
            sums = [sum(one.values()) for one in self.probabilities]
            if not math.isfinite(sum(sums)):
                wrong.update(place for place, one in enumerate(sums) if not math.isfinite(one))
        elif not math.isfinite(sum([one for one in self.predictions if type(one) is float])):
            wrong.update(place for place, one in enumerate(self.predictions) if _not_finite(one))
            self.predictions = [None if _not_finite(one) else one for one in self.predictions]
        if self.deviations is not None and math.inf in self.deviations:
            wrong.update(place for place, one in enumerate(self.deviations) if one == math.inf)
            self.deviations = [math.nan if one == math.inf else one for one in self.deviations]
        self.n_not_finite = len(wrong)


def _not_finite(said: Any) -> bool:
    return type(said) is float and not math.isfinite(said)
