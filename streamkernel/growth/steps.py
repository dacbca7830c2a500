"""Step sizes, by the default rule or a schedule of the user's; and losses and steps that no step can be taken by.

Of a loss of the user's own nothing else is known. The default rule is derived from the first mini-batch.
"""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from river.optim.base import Scheduler

from streamkernel.compute.features import largest_eigenvalue
from streamkernel.finite import LARGEST, NotFiniteError
from streamkernel.growth.base import BlockUpdate, Growth
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


#: Steps after which the default step size has halved.
HALVING = 200
#: A user's schedule may ask for any step: squares of larger ones would overflow.
LARGEST_STEP = 1e30


def first_step(
    kernel_matrix: Array,
    curvature: float,
    block_size: int,
    kappa: float = 1.0,
    feature_bound: float = 1.0,
    batch_size: int | None = None,
) -> float:
    """gamma_0 = 1 / (L (lambda_1 + phi / F + kappa / B)), where kappa and phi are 1 of most kernels; 1e100 at most.

    - kernel_matrix: K(X, X) of the first mini-batch, shape (B, B).
    - curvature: L, the Lipschitz constant of the loss's derivative.
    - block_size: F.
    - kappa: The largest k(x, x). Defaults to 1.
    - feature_bound: phi, the largest sum of the squares of one draw's features. Defaults to 1.
    - batch_size: B, where the matrix is that of a sample of the first mini-batch; None (the default): of all of it.

    Examples
    --------
    >>> import numpy as np
    >>> first_step(np.ones((4, 4)), curvature=1.0, block_size=4)
    0.6666666666666666

    """
    n = len(kernel_matrix)
    B = n if batch_size is None else batch_size
    total = curvature * (largest_eigenvalue(kernel_matrix / n) + feature_bound / block_size + kappa / B)
    return float(1 / max(total, 1 / LARGEST))


def default_step(gamma_0: float, t: int, halving: int = HALVING) -> float:
    """gamma_t = gamma_0 / (1 + t / t0), halved after t0 steps."""
    return gamma_0 / (1 + t / halving)


def scheduled_step(schedule: Scheduler, t: int) -> float:
    """The step size that a schedule gives for step t, from -1e30 to 1e30.

    NotFiniteError: It is NaN.
    """
    gamma = float(schedule.get(t))
    if math.isnan(gamma):
        name = type(schedule).__name__
        raise NotFiniteError(f"the schedule {name} gave nan in its method `get` for step {t}: it must give numbers")
    return min(max(gamma, -LARGEST_STEP), LARGEST_STEP)


def no_longer(update: BlockUpdate, limit: float) -> BlockUpdate:
    """An update whose steps are at most a limit; inequality (9) is not asked for where one had to be cut."""
    if np.max(update.size) <= limit:
        return update
    return replace(update, size=np.minimum(update.size, limit), decay=min(update.decay, limit), margin=math.nan)


def require_step(growth: Growth, update: BlockUpdate) -> None:
    """Refuse the update of a user's policy with a step that is not finite, or past `LARGEST_STEP`: NotFiniteError."""
    if not (np.abs([*np.ravel(update.size), update.decay]) <= LARGEST_STEP).all():  # NaN is not
        raise NotFiniteError(
            f"the policy {type(growth).__name__} gave a step that is not finite or is beyond {LARGEST_STEP:g} in its "
            "method `choose`: it must give finite steps only"
        )
