"""Step sizes: the default rule, derived from the first mini-batch, or a schedule of the user's."""

import math
from dataclasses import replace

import numpy as np
from river.optim.base import Scheduler

from streamkernel.compute.features import largest_eigenvalue
from streamkernel.finite import LARGEST, NotFiniteError
from streamkernel.growth.base import BlockUpdate, Growth
from streamkernel.state import Array

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
