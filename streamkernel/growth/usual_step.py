"""The usual step, compiled: of cached frequencies, by a policy of ours, under a loss with bounded gradients."""

import math

import numpy as np

from streamkernel.compute import growing_step as steps
from streamkernel.compute.features import SINE, Scaling
from streamkernel.compute.growing_step import Arriving, Room, Rule, Solution
from streamkernel.expansion.expansion import LARGEST_COEFFICIENT, SMALLEST_SCALE
from streamkernel.expansion.sources import Drawn
from streamkernel.finite import NotFiniteError
from streamkernel.growth.cdsg import CDSG, MOST_OUTPUTS, closest
from streamkernel.growth.dsg import DSG
from streamkernel.growth.history import StepUndo
from streamkernel.growth.preconditioner import ridge_of
from streamkernel.growth.udsg import UDSG
from streamkernel.growth.updates import BlockUpdates
from streamkernel.growth.waiting import MiniBatch
from streamkernel.losses import Softmax, curvature, gradient_bound
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.state import Array

#: Steps of a call of compiled code, which cannot be interrupted.
_AT_ONCE = 16
#: More blocks than there ever are.
_NO_END = 2**62


class UsualStep:
    """What `BlockUpdates.take_step` does, with the same bits, where compiled code can: a step, or many.

    - n_taken: How many records the last run took.
    """

    n_taken = 0

    def __init__(self, updates: BlockUpdates) -> None:
        self._updates = updates
        choice, targets = updates.choice, updates.targets
        policy = choice.growth
        self._most = _NO_END if choice.max_blocks is None else choice.max_blocks
        self._is_usual = (
            (type(policy) in (DSG, UDSG) or (type(policy) is CDSG and policy.cap == 1))
            and choice.feature_scale.is_bounded
            and gradient_bound(targets.loss) is not None
            and not (updates.has_own_loss or isinstance(targets, LearningTargets))
            # A schedule of the user's may ask for more than the solution of a ridge regression.
            and not (updates.preconditioned and choice.step is not None)
        )

    def frequencies(self, keys: Array) -> Array | None:
        """The cached frequencies of all blocks and those of a step; None if some are not, or features are others."""
        expansion = self._updates.expansion
        term = expansion.terms[0]
        source = term.source
        if len(expansion.terms) > 1 or term.factor != 1 or type(source) is not Drawn or source.kernel.transforms:
            return None
        n_blocks = expansion.n_blocks + self._updates.blocks_per_step
        return source.cached(keys, term.own_bandwidth or expansion.bandwidth, n_blocks)

    def begins(self, keys: Array) -> bool:
        """Whether the next step is a usual one. The first is not: it measures."""
        updates = self._updates
        begun = updates.expansion.n_blocks and (updates.history.gamma_0 or updates.choice.step is not None)
        return bool(self._is_usual and begun) and self.frequencies(keys) is not None

    def take(
        self, batch: MiniBatch, keys: Array, arriving: Arriving, scaling: Scaling, undo: StepUndo | None = None
    ) -> None:
        """Take records, and the step of each mini-batch that is full, until there are no more or a step is unusual.

        - batch: The mini-batch that waits; its records have scores.
        - keys, scaling: Of the inputs.
        - undo: Receives each change before it happens, where the caller has one.
        """
        updates, self._batch, self._undo, self._undoes = self._updates, batch, undo, undo is None
        expansion, history = updates.expansion, updates.history
        self._at = np.array([0, batch.n, 0, -1, expansion.n_blocks, history.t, history.n_reused])
        self._numbers = np.array([expansion.scale, 0.0, 0.0, math.nan, history.last_margin, 0.0])
        X, self._y, w, scores = batch.room_of(len(keys), expansion.n_outputs)
        (B, K), D = scores.shape, expansion.width
        g, weighted, gbar, phi = np.empty((B, K)), np.empty((B, K)), np.empty(K), np.empty((B, D), X.dtype)
        P = np.empty((B if updates.preconditioned else 0, D))
        self._room = Room(X, self._y.reshape(B, -1), w, scores, g, weighted, gbar, phi, P, np.empty((K, D)))
        try:
            self._take(keys, arriving, scaling)
        except BaseException:
            self._commit()
            if self._undoes and self._undo is not None and self._at[steps.NUMBER]:
                self._undo.undo()
            if not batch.room:
                batch.clear()
            raise
        self._commit()

    def _take(self, keys: Array, arriving: Arriving, scaling: Scaling) -> None:
        history, rule, stage, W = self._updates.history, self._rule([], 1.0, 0.0), steps.ARRIVE, self.frequencies(keys)
        while stage != steps.END and W is not None:
            own = Solution(W, SINE[W.dtype], self._updates.expansion.terms[0].alpha, history.all_beta)
            stage = steps.take_steps(stage, arriving, scaling, self._room, rule, own, self._at, self._numbers)
            if stage == steps.BEGIN:
                self._commit()
                W, rule = self.frequencies(keys), self._next_rule(len(arriving.learned) - self.n_taken)
            elif stage != steps.END:
                self._answer(stage)

    def _answer(self, stage: int) -> None:
        """Do what is left to Python before a stage."""
        updates, room, at = self._updates, self._room, self._at
        if stage == steps.TOO_LARGE:
            raise NotFiniteError(updates.too_large)
        if stage == steps.CHOOSE:
            room.g[:] = updates.targets.gradient(self._y, room.scores)
            return
        if stage == steps.PROJECT:
            at[steps.BLOCK] = closest(updates.history.all_beta[: at[steps.N_BLOCKS]], room.gbar)
            return
        if self._undoes and updates.blocks_per_step > 1 and not at[steps.NUMBER]:
            self._commit()
            self._undo = StepUndo(updates.expansion, updates.history, updates.choice.feature_scale, updates.targets)
        if self._undo is not None:
            self._undo.before_decay(updates.shrink(float(self._numbers[steps.GAMMA])))
        if stage == steps.MOVE:
            if self._undo is not None:
                self._undo.before_move(int(at[steps.BLOCK]))
            self._numbers[steps.RIDGE] = ridge_of(room.P, room.w) if updates.preconditioned else 0.0

    def _next_rule(self, n_left: int) -> Rule:
        """The rule of the next steps, where at most `n_left` records come, and room for the blocks of the first."""
        updates, batch, choice = self._updates, self._batch, self._updates.choice
        n_blocks = updates.expansion.n_blocks
        for block in range(n_blocks, min(n_blocks + updates.blocks_per_step, self._most)):
            updates.expansion.terms[0].block(block)
            updates.history.make_room(block)
        bound, heaviest = choice.gradient_bound(batch)
        by_class = updates.expansion.n_outputs > MOST_OUTPUTS
        sizes = choice.step_sizes(min(1 + n_left // batch.size, _AT_ONCE), batch)
        return self._rule(sizes, heaviest, choice.variance(heaviest if by_class else bound, batch))

    def _rule(self, sizes: list[float], heaviest: float, variance: float) -> Rule:
        updates, policy = self._updates, self._updates.choice.growth
        expansion, term, beta = updates.expansion, updates.expansion.terms[0], updates.history.all_beta
        assert isinstance(term.source, Drawn)
        rooms = term.alpha.shape[2] // term.block_size, len(beta) or self._most
        grow, reuse = (policy.grow, policy.reuse) if isinstance(policy, UDSG) else (1, 0)
        return Rule(
            np.array([(size, size**2) for size in sizes]).reshape(-1, 2),
            updates.history.t,
            heaviest,
            variance,
            isinstance(policy, CDSG),
            expansion.n_outputs > MOST_OUTPUTS,
            grow,
            grow + reuse,
            np.uint64(expansion.seed),
            self._most,
            type(updates.targets.loss) is Softmax,
            updates.preconditioned,
            updates.preconditioned or updates.blocks_per_step > 1 or self._undo is not None,
            updates.blocks_per_step,
            min([term.source.cache.n_blocks, *(room for room in rooms if room < self._most)]),
            updates.regularization,
            curvature(updates.targets.loss),
            LARGEST_COEFFICIENT,
            SMALLEST_SCALE,
        )

    def _commit(self) -> None:
        """Let the model have what a run has changed."""
        (self.n_taken, n, _, _, n_blocks, t, n_reused), numbers = self._at.tolist(), self._numbers.tolist()
        expansion, history = self._updates.expansion, self._updates.history
        if t > history.t:
            history.last_batch_size = len(self._y)
        history.t, history.n_reused, history.last_margin = t, n_reused, numbers[steps.LAST_MARGIN]
        expansion.n_blocks = history.n_grown = n_blocks
        expansion.scale = numbers[steps.SCALE]
        self._batch.let_wait(n)
