"""A linear axis: the range of its values, its ticks and their texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Scale", "scale_of"]

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_FULL = 1e6  # from here on a number is shortened


@dataclass(frozen=True)
class Scale:
    """An axis from its lowest to its highest value."""

    low: float
    high: float
    ticks: Sequence[float]

    def share(self, value: float) -> float:
        """Return how far up a value is: 0 for the lowest one, 1 for the highest.

        Examples
        --------
        >>> Scale(0.0, 4.0, ()).share(1.0), Scale(-1.7e308, 1.7e308, ()).share(0.0)
        (0.25, 0.5)

        """
        # Halves: the difference of two large numbers may be none.
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def text(self, tick: float) -> str:
        """Return what stands at a tick, with as many decimals as tell it from the next one.

        Examples
        --------
        >>> scale_of([0, 5300], zero=True).text(2000.0), scale_of([0.0, 9e6]).text(2e6), scale_of([0.2, 0.6]).text(0.3)
        ('2,000', '2M', '0.3')

        """
        step = min((after - before for before, after in zip(self.ticks, self.ticks[1:], strict=False)), default=1.0)
        if abs(tick) >= 1000 * _FULL or step < 1e-6:
            return f"{tick:.6g}"
        if abs(tick) >= _FULL and step >= _FULL / 1000:
            return f"{tick / _FULL:,.3f}".rstrip("0").rstrip(".") + "M"
        decimals = max(0, -math.floor(math.log10(step)))
        # A quarter of a power of ten has a figure more.
        return f"{tick:,.{decimals + (not math.isclose(step * 10**decimals, round(step * 10**decimals)))}f}"


def scale_of(values: Iterable[float], most_ticks: int = 5, zero: bool = False) -> Scale:
    """Return an axis that has room for all finite values, and for 0 if asked for; from 0 to 1 for none.

    Examples
    --------
    >>> scale_of([1.0, 9.0]).ticks, scale_of([3.0]).ticks, scale_of([]).high
    ([2.0, 4.0, 6.0, 8.0], [2.5, 3.0, 3.5], 1.0)

    """
    found = [value for value in values if math.isfinite(value)]
    low, high = (min(found), max(found)) if found else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 1e-300:
        room = abs(low) / 4 or 0.5
        low, high = low - room, high + room
    if not math.isfinite(high - low):
        return Scale(low, high, [low, high])
    step = _step((high - low) / most_ticks)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Scale(low, high, [number * step for number in range(first, last + 1)])


def _step(least: float) -> float:
    """Return the smallest round step that is no smaller."""
    power = 10.0 ** math.floor(math.log10(least)) if least > 1e-300 else 1e-300
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))
