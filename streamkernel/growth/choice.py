"""The choice of the next update: the growth policy is asked, with the step size and the terms of inequality (9)."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from river.optim.base import Scheduler

from streamkernel.expansion.expansion import Expansion
from streamkernel.finite import LARGEST
from streamkernel.growth.bandwidth import occupied
from streamkernel.growth.base import BlockUpdate, Growth, GrowthContext
from streamkernel.growth.cdsg import CDSG
from streamkernel.growth.dsg import DSG
from streamkernel.growth.feature_scale import FeatureScale
from streamkernel.growth.history import LARGEST_NORM, StepHistory
from streamkernel.growth.own_loss import diverged, is_own, require_constants
from streamkernel.growth.preconditioner import HALVING as PRECONDITIONED_HALVING
from streamkernel.growth.preconditioner import LONGEST, preconditioned_step
from streamkernel.growth.steps import HALVING, default_step, first_step, no_longer, require_step, scheduled_step
from streamkernel.growth.udsg import UDSG
from streamkernel.kernels.drawing import kernel_matrix
from streamkernel.losses import curvature, gradient_bound
from streamkernel.records.several import SeveralTargets
from streamkernel.records.targets import Targets
from streamkernel.state import Array

#: How fast the largest gradient seen is forgotten, a step.
GRADIENT_MEMORY = 0.999


class StepRecords(Protocol):
    """The labeled records of a step, as far as the choice of its block asks for them."""

    @property
    def size(self) -> int:
        """B."""

    @property
    def rows(self) -> Array:
        """Their scaled rows, shape (B, d), or those of a sample."""

    @property
    def keys(self) -> Array:
        """The keys of the inputs, uint64 of shape (d,)."""

    @property
    def mean_gradient(self) -> Array:
        """gbar, the mean of the gradients times the weights, float64 of shape (K,)."""

    @property
    def largest_gradient(self) -> float:
        """The largest norm of a gradient times its weight."""

    @property
    def largest_weight(self) -> float:
        """The largest weight."""

    def largest_eigenvalue(self, block: int) -> float:
        """That of the mean of w phi phi^T of a block's features."""


class BlockChoice:
    """The block that a mini-batch updates next, and how far, by the growth policy.

    Parameters
    ----------
    expansion, history, targets, feature_scale
        The machine's.
    growth
        The policy.
    step
        A schedule of step sizes, or None for the default rule.
    batch_size
        B, the labeled records of a step.
    max_blocks
        The most blocks, or None.
    preconditioned
        Whether steps are shares of the solution of a ridge regression.

    """

    def __init__(
        self,
        expansion: Expansion,
        history: StepHistory,
        targets: Targets,
        feature_scale: FeatureScale,
        growth: Growth,
        step: Scheduler | None,
        batch_size: int,
        max_blocks: int | None,
        preconditioned: bool,
    ) -> None:
        self._expansion = expansion
        self._history = history
        self._feature_scale = feature_scale
        self._targets = targets
        self._growth = growth
        self._step = step
        self._batch_size = batch_size
        self._max_blocks = max_blocks
        self._preconditioned = preconditioned
        self._has_own_growth = is_own(growth)
        if is_own(targets.loss):
            require_constants(targets.loss)

    @property
    def kappa(self) -> float:
        """The largest k(x, x), by which scores are larger than those of the same machine with k / kappa."""
        return self._feature_scale.kappa

    def choose(self, t: int, records: StepRecords) -> BlockUpdate:
        """Ask the policy which block to update.

        Parameters
        ----------
        t
            The number of the update, from 0.
        records
            The mini-batch.

        Raises
        ------
        NotFiniteError
            The schedule, the kernel or the policy gave what is not finite, or the gradients are not.

        """
        history, expansion, scale = self._history, self._expansion, self._feature_scale
        if not scale.is_measured:
            scale.measure(expansion, records.rows, records.keys)
        gamma = self._step_size(records)
        M, largest_weight = self._gradient_bound(records)
        FB = expansion.block_size * records.size
        longest = self._longest(records)
        context = GrowthContext(
            t=t,
            gamma=gamma,
            n_blocks=expansion.n_blocks,
            full=self._max_blocks is not None and expansion.n_blocks >= self._max_blocks,
            mean_gradient=records.mean_gradient,
            beta=history.beta,
            variance=M**2 / (scale.noise * FB),
            class_variance=largest_weight**2 / (scale.noise * FB),
            limit=longest,
            seed=expansion.seed,
        )
        update = self._growth.choose(context)
        if self._has_own_growth:
            require_step(self._growth, update, context)
        # Without a bound, what the first mini-batch showed may be far from what a later draw gives; and a policy asks
        # for no limit where each output has a step of its own.
        known = self._step is not None or (scale.is_bounded and not self._preconditioned)
        return update if known else no_longer(update, longest(update.block))

    def foreseen(self, t: int) -> int | None:
        """The block that update t will touch, if that is known before its gradients are; else None.

        Of CDSG that is a guess, a new block as long as there may be any.
        """
        n_blocks = self._expansion.n_blocks
        full = self._max_blocks is not None and n_blocks >= self._max_blocks
        if type(self._growth) not in (DSG, UDSG):
            return None if full or type(self._growth) is not CDSG else n_blocks
        context = GrowthContext(
            t, 0.0, n_blocks, full, np.zeros(0), np.zeros((0, 0)), 0.0, 0.0, lambda _: 0.0, self._expansion.seed
        )
        return self._growth.choose(context).block

    def _step_size(self, records: StepRecords) -> float:
        """The step size of a mini-batch, in gradients or, preconditioned, in solutions of its ridge regression."""
        history, expansion, loss = self._history, self._expansion, self._targets.loss
        if self._step is not None:
            return scheduled_step(self._step, history.t)
        if self._preconditioned:
            of_its_size = preconditioned_step(records.size, gradient_bound(loss) is not None)
            history.gamma_0 = history.gamma_0 or of_its_size
            # Rows given at once may be more than the first ones, which say nothing of how closely these are fitted.
            gamma_0 = history.gamma_0 if records.size == self._batch_size else of_its_size
            return default_step(gamma_0, history.t, PRECONDITIONED_HALVING)
        L, B, scale = curvature(loss), self._batch_size, self._feature_scale
        if not history.gamma_0:
            kernel, rows = expansion.kernel.on_rows(records.rows, records.keys)
            rows = occupied(rows)
            K = kernel_matrix(kernel, rows, rows, expansion.bandwidth)
            history.gamma_0 = first_step(K, L, expansion.block_size, scale.kappa, scale.feature_bound, B)
        gamma_0 = history.gamma_0
        if records.size != B:  # by which the same rule gives another step
            gamma_0 = 1 / max(1 / gamma_0 + L * scale.kappa * (1 / records.size - 1 / B), 1 / LARGEST)
        return default_step(gamma_0, history.t, HALVING)

    def _gradient_bound(self, records: StepRecords) -> tuple[float, float]:
        """M, which bounds the gradients times the weights, and the largest weight, at least 1."""
        M, largest_weight = gradient_bound(self._targets.loss), max(1.0, records.largest_weight)
        if M is not None:
            if isinstance(self._targets, SeveralTargets):  # of which each has such a derivative
                M *= math.sqrt(self._targets.n_outputs)
            # Only features without a bound lead to scores that are NaN, and so to a gradient.
            if not (self._feature_scale.is_bounded or np.isfinite(records.mean_gradient).all()):
                raise diverged(self._targets.loss)
            return M * largest_weight, largest_weight
        history, largest = self._history, records.largest_gradient
        if not largest <= LARGEST_NORM:  # NaN is not
            raise diverged(self._targets.loss)
        history.largest_gradient = max(GRADIENT_MEMORY * history.largest_gradient, largest)
        return history.largest_gradient, largest_weight

    def _longest(self, records: StepRecords) -> Callable[[int], float]:
        """The longest step that a block's features allow, by its number."""
        loss = self._targets.loss
        if self._preconditioned:
            return lambda _: LONGEST
        if self._feature_scale.is_bounded and gradient_bound(loss) is not None:
            return lambda _: math.inf

        def longest(block: int) -> float:
            largest = records.largest_eigenvalue(block)
            return 1 / (curvature(loss) * largest) if largest else math.inf

        return longest
