"""The figures of the last hour, as time series in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FigureHistory", "HistoryColumns"]

INTERVAL_SECONDS = 5.0
POINTS = 720


@dataclass(frozen=True)
class HistoryColumns:
    """A copy of the history that nobody writes to: a row of values for each name, the first of them the times."""

    names: Sequence[str]
    values: npt.NDArray[np.float64]
    interval: float

    def newer(self, since: float) -> dict[str, Any]:
        """Return the points newer than a time in seconds since 1970, as a column of each name."""
        # Times rise: a clock that is set back moves none of them.
        first = int(np.searchsorted(self.values[0], since, side="right"))
        columns = {name: row[first:].tolist() for name, row in zip(self.names, self.values, strict=True)}
        return {"interval": self.interval, "time": columns.pop("time"), "series": columns}


class FigureHistory:
    """Ring buffer of figures, one point for each interval of five seconds in which the process was at work.

    An interval without a point, as while a model is refitted, is a gap.

    Parameters
    ----------
    names
        Of the figures.

    Examples
    --------
    >>> history = FigureHistory(["loss"])
    >>> for second in range(12):
    ...     history.add(100.0 + second, {"loss": second / 10})
    >>> history.columns.newer(101.0)
    {'interval': 5.0, 'time': [105.0, 110.0], 'series': {'loss': [0.5, 1.0]}}

    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = ("time", *names)
        self._ring = np.full((len(self._names), POINTS), math.nan)
        self._count = 0
        self._due = -math.inf
        self.columns = self._copy()

    def add(self, time: float, figures: Mapping[str, float]) -> None:
        """Add a point where one is due; figures that are left out are not known then."""
        if time < self._due:
            return
        self._due = time + INTERVAL_SECONDS
        point = [round(time, 3), *(figures.get(name, math.nan) for name in self._names[1:])]
        self._ring[:, self._count % POINTS] = point
        self._count += 1
        self.columns = self._copy()

    def _copy(self) -> HistoryColumns:
        in_order = np.roll(self._ring, -(self._count % POINTS), axis=1)
        return HistoryColumns(self._names, in_order[:, POINTS - min(self._count, POINTS) :], INTERVAL_SECONDS)
