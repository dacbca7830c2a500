"""The regularizer of the window solvers."""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.finite import is_finite
from streamkernel.state import excerpt

__all__ = ["ElasticNet"]

Array = np.ndarray[Any, np.dtype[Any]]


class ElasticNet(NamedTuple):
    """The elastic net l2/2 |x|^2 + l1 |x|_1: with `l1` of 0 ridge, with `l2` of 0 the lasso.

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNet(l2=2.0, l1=1.0).value(np.array([1.0, -2.0]))
    8.0

    """

    l2: float
    l1: float = 0.0

    @classmethod
    def checked(cls, l2: Any, l1: Any, allows_l1_alone: bool = False) -> "ElasticNet":
        """One of a strongly convex part or, where that is allowed, of `l1` alone.

        Raises
        ------
        ValueError
            `l2` is not a finite number above 0, or `l1` not one from 0 up. With `l1` alone, `l2` may be 0.

        """
        for name, value in (("l2", l2), ("l1", l1)):
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            or_zero = name == "l1" or allows_l1_alone
            if not (number and is_finite(value) and (value > 0 or (or_zero and value == 0))):
                least = "from 0 up" if or_zero else "above 0"
                raise ValueError(f"{name} must be a finite number {least}, got {excerpt(value)}")
        if not (l2 or l1):
            raise ValueError("l2 and l1 are both 0: set one of them above 0")
        return cls(float(l2), float(l1))

    def value(self, x: Array) -> float:
        """The regularizer of coefficients."""
        return float(0.5 * self.l2 * np.square(x).sum() + self.l1 * np.abs(x).sum())

    def conjugate(self, s: Array) -> float:
        """sup_x <s, x> - value(x)."""
        excess = np.maximum(np.abs(s) - self.l1, 0.0)
        return float(0.5 * np.square(excess).sum() / self.l2)

    def prox(self, v: Array, step: float) -> Array:
        """The minimizer over x of value(x) + |x - v|^2 / (2 step)."""
        return np.sign(v) * np.maximum(np.abs(v) - step * self.l1, 0.0) / (1.0 + step * self.l2)
