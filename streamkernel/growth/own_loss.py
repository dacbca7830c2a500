"""What losses give, refused where no step can be taken by it: of a loss of the user's own, nothing else is known."""

import math
import warnings
from typing import Any

import numpy as np

from streamkernel.finite import LARGEST, NotFiniteError
from streamkernel.state import Array, excerpt, real


def is_own(component: Any) -> bool:
    """Whether a loss or policy is one of a user's own, of neither streamkernel nor River."""
    return type(component).__module__.partition(".")[0] not in ("streamkernel", "river")


def require_finite_gradient(loss: Any, gradient: Array, y: Array, scores: Array) -> None:
    """Refuse a gradient that is not finite, or so large that its square times a weight or a step might not be.

    It would be that of every coefficient and prediction, and of no state that can be kept.

    - loss: What gave it.
    - gradient: float64 of shape (n, K).
    - y, scores: What it was given, shapes (n,) or, of several targets, (n, K), and (n, K).

    NotFiniteError: Naming the loss, and the first target and scores it failed at.
    """
    usable = np.abs(gradient) <= LARGEST  # NaN is not
    if usable.all():
        return
    row = int(np.argmin(usable.all(axis=1)))
    given = float(gradient[row][~usable[row]][0])
    if y.ndim > 1:  # of several targets: the one that it failed at
        at = int(np.argmin(usable[row]))
        y, scores = y[:, at], scores[:, at : at + 1]
    wanted = f"numbers from {-LARGEST:g} to {LARGEST:g}" if math.isfinite(given) else "finite numbers"
    score = ", ".join(f"{u:g}" for u in scores[row, :3]) + (", ..." if scores.shape[1] > 3 else "")
    raise NotFiniteError(
        f"the loss {type(loss).__name__} gave {given} in its method `gradient` "
        f"for y_true {y[row]:g} and y_pred {score}: it must give {wanted} only"
    )


def diverged(loss: Any) -> NotFiniteError:
    """What is raised where a loss of ours has gradients past `LARGEST`, by the scores that steps have led to."""
    return NotFiniteError(
        f"the loss {type(loss).__name__} has no finite gradient, because steps are too long or features too large: "
        "use shorter steps, fewer blocks per step, smaller inputs or a smaller multiple of the kernel"
    )


def require_constants(loss: Any) -> None:
    """Refuse a loss whose constants are none, by a ValueError: step sizes follow from them."""
    name = type(loss).__name__
    L, M = (getattr(loss, constant, None) for constant in ("curvature", "gradient_bound"))
    if L is not None and not 0 < (real(L) or 0.0) <= LARGEST:
        raise ValueError(f"the loss {name} has curvature={excerpt(L)}: it must be a number above 0, or left out")
    if M is not None and not 0 <= (-1.0 if real(M) is None else float(M)) <= LARGEST:
        raise ValueError(f"the loss {name} has gradient_bound={excerpt(M)}: it must be a number from 0 up, or None")


def warn_of_losses(loss: Any, losses: Array) -> None:
    """Warn where a loss of labeled records, float64 of shape (n,), is not finite: no mean can be taken of it."""
    if not np.isfinite(losses).all():
        name = type(loss).__name__
        message = f"the loss {name} gave a value that is not finite in its method `__call__`: the mean is undefined"
        warnings.warn(message, RuntimeWarning, stacklevel=4)  # past machine and estimator: the line that learns
