"""The last values of a stream, kept in an array."""

from __future__ import annotations

import numpy as np

__all__ = ["LastValues"]


class LastValues:
    """The last values of one or more columns, the oldest first.

    Parameters
    ----------
    size
        How many are kept of a column.
    n_columns
        How many columns there are.

    Examples
    --------
    >>> last = LastValues(3)
    >>> last.extend([1.0, 2.0])
    >>> last.extend([3.0, 4.0])
    >>> last.columns
    array([[2., 3., 4.]])

    """

    def __init__(self, size: int, n_columns: int = 1) -> None:
        self._size = size
        # Twice as long: all that is kept is moved to the front once for `size` new values, not for each.
        self._values = np.empty((n_columns, 2 * size))
        self._end = 0

    def extend(self, *columns: np.ndarray | list[float]) -> None:
        """Add values to each column, the same number to all."""
        n = min(len(columns[0]), self._size)
        if self._end + n > self._values.shape[1]:
            kept = self.columns.copy()
            self._end = kept.shape[1]
            self._values[:, : self._end] = kept
        for own, values in zip(self._values, columns, strict=True):
            own[self._end : self._end + n] = values[len(values) - n :]
        self._end += n

    @property
    def columns(self) -> np.ndarray:
        """The values, shape (n_columns, n)."""
        return self._values[:, max(0, self._end - self._size) : self._end]
