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
    def checked(cls, l2: Any, l1: Any) -> "ElasticNet":
        """One of a strongly convex part.

        Raises
        ------
        ValueError
            `l2` is not a finite number above 0, or `l1` not one from 0 up.

        """
        for name, value in (("l2", l2), ("l1", l1)):
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not (number and is_finite(value) and (value > 0 or (name == "l1" and value == 0))):
                least = "above 0" if name == "l2" else "from 0 up"
                raise ValueError(f"{name} must be a finite number {least}, got {excerpt(value)}")
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
