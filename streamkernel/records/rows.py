"""Records encoded as rows of numbers: a column for each known input, and what their records alone brought."""

from typing import NamedTuple

import numpy as np

from streamkernel.state import Array

NO_KEYS = np.zeros(0, np.uint64)


class Rows(NamedTuple):
    """Encoded records, before they are scaled.

    Attributes
    ----------
    values
        One column for each known input, float64 of shape (n, d); NaN where it was not observed.
    extras
        Inputs met only in records that may not add columns, scaled, float64 of shape (n, e); 0 is not observed, -0 a
        number that is 0.
    extra_keys
        The keys of those inputs, ascending, uint64 of shape (e,).
    n_known
        The number of inputs known at each record, with its own if it may add columns; int64 of shape (n,).

    """

    values: Array
    extras: Array
    extra_keys: Array
    n_known: Array

    @classmethod
    def known(cls, values: Array) -> "Rows":
        """Encoded records, (n, d), of known inputs only."""
        n, d = values.shape
        return cls(values, np.zeros((n, 0)), NO_KEYS, np.full(n, d))

    def part(self, rows: slice) -> "Rows":
        """Some of the encoded records, with the extras that these have."""
        if not self.extra_keys.size:
            return (
                self
                if rows == slice(0, len(self.values))
                else Rows(self.values[rows], self.extras[rows], self.extra_keys, self.n_known[rows])
            )
        extras = self.extras[rows]
        used = is_met(extras).any(axis=0)
        # In the layout that compiled code knows: numpy gives columns that are chosen in the other.
        chosen = np.ascontiguousarray(extras[:, used])
        return Rows(self.values[rows], chosen, self.extra_keys[used], self.n_known[rows])

    def in_order(self, X: Array) -> Array:
        """Scaled rows X (n, d + e) with each record's extras right after the columns it knows, as if it came alone."""
        if not self.extra_keys.size:
            return X
        d = self.values.shape[1]
        X = X.copy()
        for row, n_known in zip(X, self.n_known, strict=True):
            met = row[d:][is_met(row[d:])]
            row[d:] = 0
            row[n_known : n_known + len(met)] = met
        return X


def is_met(extras: Array) -> Array:
    """Which extras were observed, bool of their shape: 0 is not, but -0 is a number that is 0."""
    return np.asarray((extras != 0) | np.signbit(extras))
