"""How a solver came to its solution."""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["History"]

Array = np.ndarray[Any, np.dtype[Any]]


class History(NamedTuple):
    """Objective and duality gap of a solver while it ran.

    Attributes
    ----------
    passes
        Passes over the data so far, of shape (steps,); the first is 0, where the solver began.
    seconds
        Seconds of work so far, without the time that this history itself took.
    objective
        The objective there.
    gap
        The duality gap there, an upper bound of how much the objective may still fall; NaN of a solver without one.

    """

    passes: Array
    seconds: Array
    objective: Array
    gap: Array

    @classmethod
    def of(cls, rows: list[tuple[float, float, float, float]]) -> "History":
        """One of rows (passes, seconds, objective, gap)."""
        return cls(*np.array(rows, np.float64).reshape(-1, 4).T.copy())
