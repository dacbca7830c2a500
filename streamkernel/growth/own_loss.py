"""A loss of the user's own: nothing is known of what it gives, so that what is not finite is told of."""

import warnings
from typing import Any

import numpy as np

from streamkernel.finite import NotFiniteError
from streamkernel.state import Array


def is_own(component: Any) -> bool:
    """Whether a loss or policy is one of a user's own, of neither streamkernel nor River."""
    return type(component).__module__.partition(".")[0] not in ("streamkernel", "river")


def require_finite_gradient(loss: Any, gradient: Array, y: Array, scores: Array) -> None:
    """Refuse a gradient that is not finite, which would be that of every coefficient and prediction.

    Parameters
    ----------
    loss
        What gave it.
    gradient
        float64 of shape (n, K).
    y, scores
        What it was given, shapes (n,) and (n, K).

    Raises
    ------
    NotFiniteError
        Naming the loss, and the first target and scores it failed at.

    """
    finite = np.isfinite(gradient).all(axis=1)
    if finite.all():
        return
    row = int(np.argmin(finite))
    score = ", ".join(f"{u:g}" for u in scores[row, :3]) + (", ..." if scores.shape[1] > 3 else "")
    raise NotFiniteError(
        f"the loss {type(loss).__name__} gave {gradient[row][~np.isfinite(gradient[row])][0]} in its method `gradient` "
        f"for y_true {y[row]:g} and y_pred {score}: it must give finite numbers only"
    )


def warn_of_losses(loss: Any, losses: Array) -> None:
    """Warn where a loss of labelled records, float64 of shape (n,), is not finite: no mean can be taken of it."""
    if not np.isfinite(losses).all():
        name = type(loss).__name__
        message = f"the loss {name} gave what is not finite in its method `__call__`: no mean can be taken of it"
        warnings.warn(message, RuntimeWarning, stacklevel=4)  # past machine and estimator: the line that learns
