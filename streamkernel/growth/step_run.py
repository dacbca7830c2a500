"""Usual steps, many in a call of compiled code, and what is to be done in Python between them."""

import math
from collections.abc import Callable

import numpy as np

from streamkernel.compute.features import SINE, Scaling
from streamkernel.compute.growing_run import (
    ARRIVE,
    BEGIN,
    BLOCK,
    CHOOSE,
    END,
    LAST_MARGIN,
    MOVE,
    N_BLOCKS,
    NUMBER,
    PROJECT,
    REST,
    RIDGE,
    ROW,
    SCALE,
    Arriving,
    Coefficients,
    Naming,
    Rule,
    T,
    Waiting,
    Workspace,
    take_steps,
)
from streamkernel.expansion.expansion import LARGEST_COEFFICIENT, SMALLEST_SCALE
from streamkernel.expansion.sources import Drawn
from streamkernel.finite import NotFiniteError
from streamkernel.growth.cdsg import closest
from streamkernel.growth.history import StepUndo
from streamkernel.growth.preconditioner import ridge_of
from streamkernel.growth.updates import BlockUpdates
from streamkernel.growth.waiting import MiniBatch
from streamkernel.losses import Softmax, curvature
from streamkernel.state import Array

#: Steps of a call, after which Python may be interrupted.
_AT_ONCE = 16


class StepRun:
    """Records that arrive, and the usual steps of their mini-batches, one after the other.

    - updates: The machine's updates.
    - naming: What names a block.
    - batch, n_inputs: The mini-batch that waits, which has scores, and the number of inputs.
    - frequencies: Gives those of all blocks and of a next step, where they are cached.
    - undo: Receives each change before it happens, where it is given.
    """

    def __init__(
        self,
        updates: BlockUpdates,
        naming: Naming,
        batch: MiniBatch,
        n_inputs: int,
        frequencies: Callable[[], Array | None],
        undo: StepUndo | None,
    ) -> None:
        self._updates, self._naming, self._batch, self._frequencies = updates, naming, batch, frequencies
        self._undo, self._undoes = undo, undo is None and updates.blocks_per_step > 1
        expansion, history = updates.expansion, updates.history
        self._at = np.array([0, batch.n, 0, -1, expansion.n_blocks, history.t, history.n_reused])
        self._numbers = np.array([expansion.scale, math.nan, history.last_margin, 0.0])
        X, self._y, w, scores = batch.room_of(n_inputs, expansion.n_outputs)
        (B, K), D = scores.shape, expansion.width
        self._waiting = Waiting(X, self._y.reshape(B, -1), w, scores)
        weighed = np.empty((B if updates.preconditioned else 0, D))
        self._work = Workspace(
            np.empty((B, K)), np.empty((B, K)), np.empty(K), np.empty((B, D), X.dtype), weighed, np.empty((K, D))
        )
        self._rule = self._rule_of([], 1.0, 0.0)

    def take(self, arriving: Arriving, scaling: Scaling) -> None:
        """Take records until there are no more, or an unusual step is due."""
        try:
            self._take(arriving, scaling)
        except BaseException:
            self._commit()
            if self._undoes and self._undo is not None and self._at[NUMBER]:
                self._undo.undo()
            if not self._batch.room:
                self._batch.clear()
            raise
        self._commit()

    @property
    def n_taken(self) -> int:
        """How many records were taken."""
        return int(self._at[ROW])

    def _take(self, arriving: Arriving, scaling: Scaling) -> None:
        stage, W, history = ARRIVE, self._frequencies(), self._updates.history
        while stage != END and W is not None:
            own = Coefficients(W, SINE[W.dtype], self._updates.expansion.terms[0].alpha, history.all_beta)
            stage = take_steps(
                stage, arriving, scaling, self._waiting, self._rule, own, self._work, self._at, self._numbers
            )
            if stage == BEGIN:
                self._commit()
                W = self._frequencies()
                self._make_room()
                self._rule = self._next_rule(len(arriving.learned) - int(self._at[ROW]))
            elif stage != END:
                self._answer(stage)

    def _answer(self, stage: int) -> None:
        """Do what is left to Python before a stage."""
        updates, work = self._updates, self._work
        if stage == CHOOSE:
            work.g[:] = updates.targets.gradient(self._y, self._waiting.scores)
        elif stage == PROJECT:
            self._at[BLOCK] = closest(updates.history.all_beta[: self._at[N_BLOCKS]], work.gbar)
        elif stage in (MOVE, REST):
            if stage == MOVE and updates.preconditioned:
                self._numbers[RIDGE] = ridge_of(work.P, self._waiting.w)
            self._keep(stage == MOVE)
        else:
            raise NotFiniteError(updates.too_large)

    def _keep(self, moves: bool) -> None:
        """Keep what an update is about to change."""
        updates, rule = self._updates, self._rule
        if self._undoes and not self._at[NUMBER]:
            self._commit()
            self._undo = StepUndo(updates.expansion, updates.history, updates.choice.feature_scale, updates.targets)
        if self._undo is not None:
            self._undo.before_decay(updates.shrink(float(rule.gammas[self._at[T] - rule.first, 0])))
            if moves:
                self._undo.before_move(int(self._at[BLOCK]))

    def _make_room(self) -> None:
        """Make room for the blocks that a step may make."""
        updates, n_blocks = self._updates, int(self._at[N_BLOCKS])
        for block in range(n_blocks, min(n_blocks + updates.blocks_per_step, self._naming.most)):
            updates.expansion.terms[0].block(block)
            updates.history.make_room(block)

    def _next_rule(self, n_left: int) -> Rule:
        """The rule of the next steps, where at most `n_left` records come."""
        choice, batch = self._updates.choice, self._batch
        bound, heaviest = choice.gradient_bound(batch)
        variance = choice.variance(heaviest if self._naming.by_class else bound, batch)
        sizes = choice.step_sizes(min(1 + n_left // batch.size, _AT_ONCE), batch)
        return self._rule_of([(size, size**2) for size in sizes], heaviest, variance)

    def _rule_of(self, sizes: list[tuple[float, float]], heaviest: float, variance: float) -> Rule:
        updates, naming = self._updates, self._naming
        term, beta = updates.expansion.terms[0], updates.history.all_beta
        assert isinstance(term.source, Drawn)
        rooms = term.alpha.shape[2] // term.block_size, len(beta) or naming.most
        return Rule(
            naming,
            np.array(sizes).reshape(-1, 2),
            updates.history.t,
            heaviest,
            variance,
            updates.regularization,
            curvature(updates.targets.loss),
            type(updates.targets.loss) is Softmax,
            updates.preconditioned,
            updates.preconditioned or self._undoes or self._undo is not None,
            updates.blocks_per_step,
            min([term.source.cache.n_blocks, *(room for room in rooms if room < naming.most)]),
            LARGEST_COEFFICIENT,
            SMALLEST_SCALE,
        )

    def _commit(self) -> None:
        """Let the model have what a run has changed."""
        (_, n, _, _, n_blocks, t, n_reused), numbers = self._at.tolist(), self._numbers.tolist()
        expansion, history = self._updates.expansion, self._updates.history
        if t > history.t:
            history.last_batch_size = len(self._y)
        history.t, history.n_reused, history.last_margin = t, n_reused, numbers[LAST_MARGIN]
        expansion.n_blocks = history.n_grown = n_blocks
        expansion.scale = numbers[SCALE]
        self._batch.let_wait(n)
