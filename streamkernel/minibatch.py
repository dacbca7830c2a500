"""The mini-batch: labelled records wait in the state until `batch_size` of them make a step."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamkernel.state import Array, Record, array, misfit


class MiniBatch:
    """Scaled rows, targets and weights of the labelled records since the last step.

    Parameters
    ----------
    size
        B, the records of a step.
    dtype
        float32 or float64.

    Attributes
    ----------
    y, w
        Encoded targets and weights so far, float64 of shape (n,).

    """

    def __init__(self, size: int, dtype: np.dtype[Any]) -> None:
        self._size = size
        self._dtype = dtype
        self.clear()

    def clear(self) -> None:
        """Begin the next one."""
        self._X: list[Array] = []
        self._scores: list[Array | None] = []
        self.y = np.zeros(0)
        self.w = np.zeros(0)

    @property
    def room(self) -> int:
        """Records until the step."""
        return self._size - len(self.y)

    def append(self, X: Array, y: Array, w: Array, scores: Array | None) -> None:
        """Add rows, with their scores where they were predicted."""
        self._X.append(X)
        self._scores.append(scores)
        self.y = np.concatenate([self.y, y])
        self.w = np.concatenate([self.w, w])

    def rows(self, n_inputs: int) -> Array:
        """The scaled rows, shape (n, n_inputs): an input that came later was absent before."""
        return stacked(self._X, np.zeros((len(self.y), n_inputs), self._dtype))

    @property
    def scores(self) -> Array | None:
        """The rows' scores if all were predicted on their way in; they are a cache, a row's bits never differ."""
        known = [part for part in self._scores if part is not None]
        return np.concatenate(known) if known and len(known) == len(self._scores) else None

    def record(self, n_inputs: int) -> Record:
        """The fields of the state."""
        return {"batch_rows": self.rows(n_inputs), "batch_targets": self.y, "batch_weights": self.w}

    def restore(self, record: Record, n_inputs: int) -> None:
        """Take the fields that `record` gave; ValueError where they do not fit."""
        self.clear()
        y = array(record, "batch_targets", np.float64, None)
        w = array(record, "batch_weights", np.float64, len(y))
        X = array(record, "batch_rows", self._dtype, len(y), n_inputs)
        if len(y) >= self._size:
            raise misfit("batch_targets")
        if len(y):
            self.append(X, y, w, None)


def stacked(parts: Sequence[Array], out: Array) -> Array:
    """Rows of parts one under the other in `out`, which stays as it is where a part lacks the later columns."""
    at = 0
    for part in parts:
        out[at : at + len(part), : part.shape[1]] = part
        at += len(part)
    return out
