"""The usual step, compiled: of cached frequencies, by a policy of ours, under a loss with bounded gradients."""

import math

import numpy as np

from streamkernel.compute.cholesky import add_products
from streamkernel.compute.features import SINE, Scaling
from streamkernel.compute.growing_step import block_gradient, choose_block, move_block, score_rows
from streamkernel.expansion.expansion import LARGEST_COEFFICIENT, Expansion
from streamkernel.expansion.sources import Drawn
from streamkernel.growth.cdsg import CDSG, MOST_OUTPUTS, closest
from streamkernel.growth.dsg import DSG
from streamkernel.growth.history import StepUndo
from streamkernel.growth.udsg import UDSG
from streamkernel.growth.updates import BlockUpdates
from streamkernel.growth.waiting import MiniBatch
from streamkernel.losses import gradient_bound
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.state import Array

_NO_GRADIENT = np.zeros((0, 0))


class UsualStep:
    """What `BlockUpdates.take_step` does and `Expansion.scores` gives, with the same bits, where compiled code can."""

    def __init__(self, updates: BlockUpdates) -> None:
        self._updates = updates
        choice, targets = updates.choice, updates.targets
        policy = choice.growth
        self._checks = type(policy) is CDSG
        self._is_usual = (
            (type(policy) in (DSG, UDSG) or (type(policy) is CDSG and policy.cap == 1))
            and choice.feature_scale.is_bounded
            and gradient_bound(targets.loss) is not None
            and not (updates.has_own_loss or isinstance(targets, LearningTargets))
            # A schedule of the user's may ask for more than the solution of a ridge regression.
            and not (updates.preconditioned and choice.step is not None)
        )

    def frequencies(self, keys: Array, n_new: int = 1) -> Array | None:
        """The cached frequencies of all blocks and the next ones; None if some are not, or features are others."""
        expansion = self._updates.expansion
        term = expansion.terms[0]
        source = term.source
        if len(expansion.terms) > 1 or term.factor != 1 or type(source) is not Drawn or source.kernel.transforms:
            return None
        return source.cached(keys, term.own_bandwidth or expansion.bandwidth, expansion.n_blocks + n_new)

    def score(self, expansion: Expansion, values: Array, learned: Array, scaling: Scaling, W: Array, X: Array) -> Array:
        """Scale rows into X (n, d) as they arrive, and give their scores, float64 of shape (n, K)."""
        scores = np.zeros((len(X), expansion.n_outputs))
        factor = expansion.scale / np.sqrt(expansion.block_size)
        alpha = expansion.terms[0].alpha
        moments = scaling.standardize, scaling.limit, scaling.is_number, scaling.moments
        score_rows(values, learned, *moments, W, alpha, expansion.n_features, factor, SINE[X.dtype], X, scores)
        return scores

    def for_step(self, keys: Array) -> Array | None:
        """The frequencies of all blocks of the next step; None if it is no usual one. The first is not: it measures."""
        updates = self._updates
        begun = updates.expansion.n_blocks and (updates.history.gamma_0 or updates.choice.step is not None)
        return self.frequencies(keys, updates.blocks_per_step) if self._is_usual and begun else None

    def take(self, batch: MiniBatch, W: Array, X: Array, scores: Array, undo: StepUndo) -> None:
        """Take a step as `BlockUpdates.take_step` does; the scores are written over."""
        updates = self._updates
        expansion, history = updates.expansion, updates.history
        expansion.widen(scores.shape[1])
        history.widen(scores.shape[1])
        for number in range(updates.blocks_per_step):
            moved = self._update(batch, W, X, scores, number, undo)
            if moved is None:
                break
            if number < updates.blocks_per_step - 1:
                shrink, phi, delta = moved
                scores *= shrink
                add_products(phi.astype(np.float64), delta, scores)
        history.end_step(len(scores))

    def _update(
        self, batch: MiniBatch, W: Array, X: Array, scores: Array, number: int, undo: StepUndo
    ) -> tuple[float, Array, Array] | None:
        """Update a block: by what all coefficients shrink, its features and move; None where no record pulls."""
        updates = self._updates
        expansion, history, choice = updates.expansion, updates.history, updates.choice
        (n, K), F = scores.shape, expansion.block_size
        g = np.ascontiguousarray(updates.targets.gradient(batch.y, scores), np.float64)
        gamma, by_class = choice.step_size(batch), K > MOST_OUTPUTS
        bound, largest_weight = choice.gradient_bound(batch)
        variance = choice.variance(largest_weight if by_class else bound, batch)
        weighted, gbar, t = np.empty((n, K)), np.empty(K), history.t * updates.blocks_per_step + number
        beta = history.beta
        block, margin, pulls = choose_block(g, batch.w, by_class, gamma, gamma**2, variance, beta, weighted, gbar)
        if not self._checks:
            block, margin = choice.foreseen(t), math.nan
        elif block < 0:
            block = closest(beta, gbar) if choice.is_full else expansion.n_blocks
        shrink = updates.shrink(gamma)
        undo.before_decay(shrink)
        if not pulls:
            expansion.decay(shrink)
            history.decay(shrink)
            return None
        phi, G = np.empty((n, 2 * F), X.dtype), np.empty((K, 2 * F))
        block_gradient(X, W, block, SINE[X.dtype], weighted, phi, _NO_GRADIENT if updates.preconditioned else G)
        if updates.preconditioned:
            G = updates.preconditioned_gradient(phi, g, batch.w)
        is_new = block == expansion.n_blocks
        expansion.decay(shrink)
        history.decay(shrink)
        undo.before_move(block)  # which makes room for a new one
        history.make_room(block)
        move_block(
            block, gamma, expansion.scale, LARGEST_COEFFICIENT, G, gbar, expansion.terms[0].alpha, history.all_beta
        )
        expansion.n_blocks += is_new
        history.count(is_new, math.nan if updates.preconditioned else margin)
        return shrink, phi, G
