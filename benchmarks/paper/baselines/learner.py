"""What every algorithm of a comparison has: mini-batches in, scores out, and the bytes it keeps."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
#: The derivative of a loss by the scores, from scores and targets of shape (n, K): the same shape.
Derivative = Callable[[Array, Array], Array]


class BatchLearner(Protocol):
    """A learner of f: R^d -> R^K."""

    def learn(self, X: Array, T: Array, rows: Array) -> None:
        """Learn one mini-batch: inputs (B, d), targets (B, K) and the rows' numbers in the training set (B,)."""

    def scores(self, X: Array) -> Array:
        """f(x) of each row, shape (n, K)."""

    @property
    def nbytes(self) -> int:
        """Bytes of what predictions are made of."""


def hinge(scores: Array, T: Array) -> Array:
    """-t where t f < 1 and 0 elsewhere; of several outputs, each is a machine of its own (one against the rest)."""
    return np.where(T * scores < 1, -T, 0)


def square(scores: Array, T: Array) -> Array:
    """f - t, of half the squared error."""
    return scores - T


def logistic(scores: Array, T: Array) -> Array:
    """-t / (1 + exp(t f)), of the logistic loss."""
    return np.asarray(-T / (1 + np.exp(np.minimum(T * scores, 500))))


def softmax(scores: Array, T: Array) -> Array:
    """Probability minus indicator, of the cross-entropy of targets that are +1 for the class and -1 for others."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True) - (T > 0))
