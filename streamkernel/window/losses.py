"""The losses of the window solvers, by name, and their regularizer."""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.window_losses import LOGISTIC, SMOOTH_HINGE, SQUARED, SQUARED_HINGE
from streamkernel.state import Array, excerpt

__all__ = ["LOSSES", "ElasticNet", "WindowLoss", "window_loss"]


class WindowLoss(NamedTuple):
    """A convex, smooth loss phi(z) of one score."""

    kind: int  #: Its number in compiled code
    gamma: float  #: phi is (1 / gamma)-smooth: the Lipschitz constant of its derivative is 1 / gamma
    of_labels: bool  #: Whether its target is a label of -1 or 1, not a number
    beta: float = 0.0  #: Above 0 the loss is phi(beta (z - y)) / beta of a score z and a target y


LOSSES = {
    "squared": WindowLoss(SQUARED, 1.0, False),
    "log": WindowLoss(LOGISTIC, 4.0, True),
    "smooth_hinge": WindowLoss(SMOOTH_HINGE, 1.0, True),
    "squared_hinge": WindowLoss(SQUARED_HINGE, 1.0, True),
}


def window_loss(name: Any) -> WindowLoss:
    """The loss of a name.

    ValueError: There is none of that name.

    Examples
    --------
    >>> window_loss("log").gamma
    4.0

    """
    loss = LOSSES.get(name) if isinstance(name, str) else None
    if loss is None:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {excerpt(name)}")
    return loss


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
