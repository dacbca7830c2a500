"""The classes that the report metrics distinguish, each with a number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

__all__ = ["NONE", "OTHER", "ClassNumbers", "macro_f1"]

#: All classes past the limit.
OTHER = 0
#: No class.
NONE = -1

# Python finds whole numbers below this by their own value; larger ones may be made to collide by the thousand.
_HASHED_AS_THEMSELVES = 2**61 - 1


class ClassNumbers:
    """Numbers labels in the order in which they come, up to a limit.

    What a stream brings as labels is not to be trusted: there may be a new one in each record, or only such as Python
    cannot tell apart by their hashes. Neither costs memory or time here.

    Parameters
    ----------
    limit
        How many classes have a number of their own.

    Examples
    --------
    >>> numbers = ClassNumbers(2)
    >>> numbers.of(["a", "b", "a", "c", "d", None])
    array([ 1,  2,  1,  0,  0, -1])

    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._numbers: dict[Hashable, int] = {None: NONE}

    def of(self, labels: Sequence[Any]) -> np.ndarray:
        """Return the number of each label, `OTHER` past the limit and `NONE` for None, as an array."""
        try:
            return np.fromiter(map(self._numbers.__getitem__, labels), np.int64, len(labels))
        except (KeyError, TypeError):  # a new one, or one without a hash
            return np.array([self._number(label) for label in labels], np.int64)

    def _number(self, label: Any) -> int:
        key = _key(label)
        number = self._numbers.get(key, OTHER)
        if number == OTHER and len(self._numbers) <= self.limit:
            number = self._numbers[key] = len(self._numbers)
        return number


def _key(label: Any) -> Hashable:
    """Return the key of a label in a dict: equal labels have the same."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, int) and abs(label) >= _HASHED_AS_THEMSELVES:
        return label.to_bytes(label.bit_length() // 8 + 1, "little", signed=True)  # bytes have a hash with a seed
    return label if isinstance(label, Hashable) else repr(label)


def macro_f1(correct: Counter[Any], targets: Counter[Any], predictions: Counter[Any]) -> float:
    """Return the mean of the F1 of the classes that came.

    A class that is predicted and did not come has no F1: where it left the window, its last predictions change nothing.

    Parameters
    ----------
    correct, targets, predictions
        By class: how many predictions are right, how often it came, and how often it was predicted. One class came.

    Examples
    --------
    >>> macro_f1(Counter({"a": 2}), Counter({"a": 3}), Counter({"a": 2, "b": 1}))
    0.8

    """
    return math.fsum(2 * correct[one] / (n + predictions[one]) for one, n in targets.items()) / len(targets)
