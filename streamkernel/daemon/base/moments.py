"""Running moments of the numbers learned: their deviation is the unit of every regressor's loss."""

from __future__ import annotations

from typing import NamedTuple

from streamkernel.finite import clamped, clipped

__all__ = ["Moments"]


class Moments(NamedTuple):
    """Number, mean and sum of squared deviations of the targets that were learned; of classes 0 each.

    Examples
    --------
    >>> moments = Moments().after(1.0).after(3.0)
    >>> moments, moments.deviation
    (Moments(n=2, mean=2.0, m2=2.0), 1.0)

    """

    n: int = 0
    mean: float = 0.0
    m2: float = 0.0

    def after(self, y: float) -> Moments:
        """Return the moments with one more target; one whose square overflows counts as the largest that does not."""
        n = self.n + 1
        y = clipped(y)
        delta = y - self.mean
        mean = self.mean + delta / n
        return Moments(n, mean, clamped(self.m2 + delta * (y - mean)))

    @property
    def deviation(self) -> float:
        """The deviation; 0 before two targets differ."""
        return (self.m2 / self.n) ** 0.5 if self.m2 > 0 else 0.0
