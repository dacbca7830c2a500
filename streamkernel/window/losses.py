"""The losses of the window solvers, by name."""

from typing import Any, NamedTuple

from streamkernel.compute.window_losses import LOGISTIC, SMOOTH_HINGE, SQUARED, SQUARED_HINGE
from streamkernel.state import excerpt

__all__ = ["LOSSES", "WindowLoss", "window_loss"]


class WindowLoss(NamedTuple):
    """A convex, smooth loss phi(z) of one score.

    Attributes
    ----------
    kind
        Its number in compiled code.
    gamma
        phi is (1 / gamma)-smooth: the Lipschitz constant of its derivative is 1 / gamma.
    of_labels
        Whether its target is a label of -1 or 1, not a number.
    beta
        Above 0 the loss is phi(beta (z - y)) / beta of a score z and a target y.

    """

    kind: int
    gamma: float
    of_labels: bool
    beta: float = 0.0


LOSSES = {
    "squared": WindowLoss(SQUARED, 1.0, False),
    "log": WindowLoss(LOGISTIC, 4.0, True),
    "smooth_hinge": WindowLoss(SMOOTH_HINGE, 1.0, True),
    "squared_hinge": WindowLoss(SQUARED_HINGE, 1.0, True),
}


def window_loss(name: Any) -> WindowLoss:
    """The loss of a name.

    Raises
    ------
    ValueError
        There is none of that name.

    Examples
    --------
    >>> window_loss("log").gamma
    4.0

    """
    loss = LOSSES.get(name) if isinstance(name, str) else None
    if loss is None:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {excerpt(name)}")
    return loss
