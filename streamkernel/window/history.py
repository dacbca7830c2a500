"""The history of a solver's run."""

from typing import NamedTuple

import numpy as np

from streamkernel.state import Array

__all__ = ["History"]


class History(NamedTuple):
    """The objective and duality gap of a solver during its run.

    Attributes
    ----------
    passes
        Passes over the data so far, of shape (steps,). The first is 0, at the start.
    seconds
        Seconds of work so far, without the time for this history.
    objective
        The objective there.
    gap
        The duality gap there, an upper bound on the distance to the optimum. NaN for a solver without one.

    """

    passes: Array
    seconds: Array
    objective: Array
    gap: Array

    @classmethod
    def of(cls, rows: list[tuple[float, float, float, float]]) -> "History":
        """One of rows (passes, seconds, objective, gap)."""
        return cls(*np.array(rows, np.float64).reshape(-1, 4).T.copy())
