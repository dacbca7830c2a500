"""Step sizes: the default rule, derived from the first mini-batch, or a schedule of the user's."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from river.optim.base import Scheduler

from streamkernel.compute.features import largest_eigenvalue
from streamkernel.finite import LARGEST, NotFiniteError
from streamkernel.growth.base import BlockUpdate, Growth, GrowthContext
from streamkernel.state import Array, excerpt, real

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

    TypeError: It is no number.
    NotFiniteError: It is NaN.
    """
    given, name = schedule.get(t), type(schedule).__name__
    gamma = real(np.asarray(given)[()])
    if gamma is None:
        raise TypeError(
            f"the schedule {name} gave {excerpt(given)} in its method `get` for step {t}: it must give numbers"
        )
    if math.isnan(gamma):
        raise NotFiniteError(f"the schedule {name} gave nan in its method `get` for step {t}: it must give numbers")
    return min(max(gamma, -LARGEST_STEP), LARGEST_STEP)


def no_longer(update: BlockUpdate, limit: float) -> BlockUpdate:
    """An update whose steps are at most a limit; inequality (9) is not asked for where one had to be cut."""
    if np.max(update.size) <= limit:
        return update
    return replace(update, size=np.minimum(update.size, limit), decay=min(update.decay, limit), margin=math.nan)


def require_step(growth: Growth, update: Any, context: GrowthContext) -> None:
    """Refuse what a policy of the user's gave where no step can be taken by it.

    NotFiniteError: Step sizes are not finite, or past `LARGEST_STEP`.
    TypeError: It is no `BlockUpdate`, or one of anything but numbers; there is no such block, or there are not as many
    step sizes as outputs.
    """
    gave = f"the policy {type(growth).__name__} gave"
    by = "in its method `choose`: it must give"
    if not isinstance(update, BlockUpdate):
        raise TypeError(f"{gave} {excerpt(update)} {by} a BlockUpdate")
    most = context.n_blocks - context.full
    if not (isinstance(update.block, int | np.integer) and 0 <= update.block <= most):
        raise TypeError(f"{gave} the block {excerpt(update.block)} {by} a whole number from 0 to {most}")
    try:
        steps = np.asarray(update.size, np.float64), np.asarray(update.decay, np.float64)
    except (TypeError, ValueError):
        sizes = f"{excerpt(update.size)} and the decay {excerpt(update.decay)}"
        raise TypeError(f"{gave} the size {sizes} {by} numbers") from None
    K = len(context.mean_gradient)
    if steps[0].shape not in ((), (K,)) or steps[1].shape:
        shapes = f"of shape {steps[0].shape} and a decay of shape {steps[1].shape}"
        raise TypeError(f"{gave} a size {shapes} {by} a size that is a number or of shape ({K},), and a number")
    if not all((np.abs(step) <= LARGEST_STEP).all() for step in steps):  # NaN is not
        raise NotFiniteError(f"{gave} a step that is not finite or is beyond {LARGEST_STEP:g} {by} finite steps only")
