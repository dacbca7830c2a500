"""The choice of the next update: the growth policy is asked, with the step size and the terms of inequality (9)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from river.optim.base import Scheduler

from streamkernel.expansion.expansion import Expansion
from streamkernel.finite import LARGEST
from streamkernel.growth.base import BlockUpdate, Growth, GrowthContext
from streamkernel.growth.cdsg import CDSG
from streamkernel.growth.dsg import DSG
from streamkernel.growth.feature_scale import FeatureScale, occupied
from streamkernel.growth.history import LARGEST_NORM, StepHistory
from streamkernel.growth.preconditioner import HALVING as PRECONDITIONED_HALVING
from streamkernel.growth.preconditioner import LONGEST, preconditioned_step
from streamkernel.growth.steps import (
    HALVING,
    default_step,
    diverged,
    first_step,
    is_own,
    no_longer,
    require_constants,
    require_step,
    scheduled_step,
)
from streamkernel.growth.udsg import UDSG
from streamkernel.kernels.drawing import kernel_matrix
from streamkernel.losses import curvature, gradient_bound
from streamkernel.records.several import SeveralTargets
from streamkernel.records.targets import Targets

#: How fast the largest gradient seen is forgotten, a step.
GRADIENT_MEMORY = 0.999


@dataclass(eq=False)
class BlockChoice:
    """The block that a mini-batch updates next, and how far, by the growth policy."""

    expansion: Expansion
    history: StepHistory
    targets: Targets
    feature_scale: FeatureScale
    growth: Growth  #: The policy
    step: Scheduler | None  #: A schedule of step sizes, or None for the default rule
    batch_size: int  #: B, the labeled records of a step
    max_blocks: int | None  #: The most blocks, or None
    preconditioned: bool  #: Whether steps are shares of the solution of a ridge regression

    def __post_init__(self) -> None:
        self._has_own_growth = is_own(self.growth)
        if is_own(self.targets.loss):
            require_constants(self.targets.loss)

    @property
    def kappa(self) -> float:
        """The largest k(x, x), by which scores are larger than those of the same machine with k / kappa."""
        return self.feature_scale.kappa

    def choose(self, t: int, records: Any) -> BlockUpdate:
        """Ask the policy which block to update.

        - t: The number of the update, from 0.
        - records: The mini-batch: `MiniBatchRecords`, or the same figures of a batch of any size.

        NotFiniteError: The schedule, the kernel or the policy gave what is not finite, or the gradients are not.
        """
        history, expansion, scale = self.history, self.expansion, self.feature_scale
        if not scale.is_measured:
            scale.measure(expansion, records.rows, records.keys)
        gamma = self.step_size(records)
        M, largest_weight = self.gradient_bound(records)
        longest = self._longest(records)
        context = GrowthContext(
            t=t,
            gamma=gamma,
            n_blocks=expansion.n_blocks,
            full=self.is_full,
            mean_gradient=records.mean_gradient,
            beta=history.beta,
            variance=self.variance(M, records),
            class_variance=self.variance(largest_weight, records),
            limit=longest,
            seed=expansion.seed,
        )
        update = self.growth.choose(context)
        if self._has_own_growth:
            require_step(self.growth, update)
        # Without a bound, what the first mini-batch showed may be far from what a later draw gives; and a policy asks
        # for no limit where each output has a step of its own.
        known = self.step is not None or (scale.is_bounded and not self.preconditioned)
        return update if known else no_longer(update, longest(update.block))

    def foreseen(self, t: int) -> int | None:
        """The block that update t will touch, if that is known before its gradients are; else None.

        Of CDSG that is a guess, a new block as long as there may be any.
        """
        n_blocks, full = self.expansion.n_blocks, self.is_full
        if type(self.growth) not in (DSG, UDSG):
            return None if full or type(self.growth) is not CDSG else n_blocks
        context = GrowthContext(
            t, 0.0, n_blocks, full, np.zeros(0), np.zeros((0, 0)), 0.0, 0.0, lambda _: 0.0, self.expansion.seed
        )
        return self.growth.choose(context).block

    @property
    def is_full(self) -> bool:
        """Whether there are as many blocks as may be."""
        return self.max_blocks is not None and self.expansion.n_blocks >= self.max_blocks

    def variance(self, bound: float, records: Any) -> float:
        """The variance term v of (9), of a bound of the gradients times the weights."""
        return float(bound**2 / (self.feature_scale.noise * (self.expansion.block_size * records.size)))

    def step_size(self, records: Any) -> float:
        """The step size of a mini-batch, in gradients or, preconditioned, in solutions of its ridge regression."""
        history, expansion, loss = self.history, self.expansion, self.targets.loss
        if self.step is not None:
            return scheduled_step(self.step, history.t)
        if self.preconditioned:
            of_its_size = preconditioned_step(records.size, gradient_bound(loss) is not None)
            history.gamma_0 = history.gamma_0 or of_its_size
            # Rows given at once may be more than the first ones, which say nothing of how closely these are fitted.
            gamma_0 = history.gamma_0 if records.size == self.batch_size else of_its_size
            return default_step(gamma_0, history.t, PRECONDITIONED_HALVING)
        L, B, scale = curvature(loss), self.batch_size, self.feature_scale
        if not history.gamma_0:
            kernel, rows = expansion.kernel.on_rows(records.rows, records.keys)
            rows = occupied(rows)
            K = kernel_matrix(kernel, rows, rows, expansion.bandwidth)
            history.gamma_0 = first_step(K, L, expansion.block_size, scale.kappa, scale.feature_bound, B)
        gamma_0 = history.gamma_0
        if records.size != B:  # by which the same rule gives another step
            gamma_0 = 1 / max(1 / gamma_0 + L * scale.kappa * (1 / records.size - 1 / B), 1 / LARGEST)
        return default_step(gamma_0, history.t, HALVING)

    def step_sizes(self, n: int, records: Any) -> list[float]:
        """Those of the next n steps of full mini-batches, or fewer: a schedule is asked when its step is taken."""
        if self.step is not None:
            return [self.step_size(records)]
        halving = PRECONDITIONED_HALVING if self.preconditioned else HALVING
        return [default_step(self.history.gamma_0, self.history.t + later, halving) for later in range(n)]

    def gradient_bound(self, records: Any) -> tuple[float, float]:
        """M, which bounds the gradients times the weights, and the largest weight, at least 1."""
        M, largest_weight = gradient_bound(self.targets.loss), max(1.0, records.largest_weight)
        if M is not None:
            if isinstance(self.targets, SeveralTargets):  # of which each has such a derivative
                M *= math.sqrt(self.targets.n_outputs)
            # Only features without a bound lead to scores that are NaN, and so to a gradient.
            if not (self.feature_scale.is_bounded or np.isfinite(records.mean_gradient).all()):
                raise diverged(self.targets.loss)
            return M * largest_weight, largest_weight
        history, largest = self.history, records.largest_gradient
        if not largest <= LARGEST_NORM:  # NaN is not
            raise diverged(self.targets.loss)
        history.largest_gradient = max(GRADIENT_MEMORY * history.largest_gradient, largest)
        return history.largest_gradient, largest_weight

    def _longest(self, records: Any) -> Callable[[int], float]:
        """The longest step that a block's features allow, by its number."""
        loss = self.targets.loss
        if self.preconditioned:
            return lambda _: LONGEST
        if self.feature_scale.is_bounded and gradient_bound(loss) is not None:
            return lambda _: math.inf

        def longest(block: int) -> float:
            largest = records.largest_eigenvalue(block)
            return 1 / (curvature(loss) * largest) if largest else math.inf

        return longest
