"""Macro F1 over the classes that came, which River's also takes over those that were only predicted."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

__all__ = ["macro_f1"]


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
