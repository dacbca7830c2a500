"""The figures of the last hour, as time series in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from streamkernel.daemon.base.status_snapshot import StatusHistory

__all__ = ["FigureHistory"]

INTERVAL_SECONDS = 5.0
POINTS = 720


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
    StatusHistory(interval=5.0, time=[105.0, 110.0], series={'loss': [0.5, 1.0]})

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

    def _copy(self) -> StatusHistory:
        in_order = np.roll(self._ring, -(self._count % POINTS), axis=1)[:, POINTS - min(self._count, POINTS) :]
        columns = dict(zip(self._names, in_order.tolist(), strict=True))
        return StatusHistory(INTERVAL_SECONDS, columns.pop("time"), columns)
