"""The passes of a batch step over rows, as functions of a model as it was sent out and of rows: nothing is changed.

They run where the rows are. What they give adds up, so that no pass depends on how the rows are parted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamkernel.batch.chunk import BatchChunk, EncodedChunk, encode
from streamkernel.batch.sums import NO_BLOCK, BlockSums, GradientSums, Sums
from streamkernel.compute.cholesky import add_gram, add_products
from streamkernel.compute.features import mean_outer
from streamkernel.finite import LARGEST
from streamkernel.growth.machine import Machine
from streamkernel.growth.steps import diverged, is_own, require_finite_gradient
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.records.results import BatchResult, padded
from streamkernel.records.targets import Encoded, Targets
from streamkernel.state import Array

#: Rows whose features are in memory at once.
AT_ONCE = 4096
_NO_KEYS = np.zeros(0, np.uint64)


class ScoredRows(NamedTuple):
    """Learned rows with the scores they had before the step."""

    X: Array  #: Scaled rows, shape (n, d), of the expansion's dtype
    y: Array  #: Encoded targets and weights, float64 of shape (n,)
    w: Array
    scores: Array  #: f(x), float64 of shape (n, K)
    n_moves: int = 0  #: Of the moves of this step, how many are in the scores


class ScoredChunk(NamedTuple):
    """A chunk as a model saw it before the step."""

    encoded: EncodedChunk  #: All rows as numbers
    result: BatchResult  #: The predictions of all rows
    rows: ScoredRows | None  #: What is kept of the learned rows for later passes; None where there are none
    sums: Sums  #: What the model asks of the learned rows


class Move(NamedTuple):
    """What became of a block in this step, of which the scores of its rows follow."""

    block: int  #: The number of the block
    shrink: float  #: What all coefficients were multiplied by before
    delta: Array  #: What was added to its coefficients, float64 of shape (K, D)


@dataclass(frozen=True)
class ScorePass:
    """The predictions of rows, and the gradients of the learned ones."""

    before: Array  #: What was known of targets before the batch, (2,), as a row of `Encoded.before`
    #: Whether losses and gradients are taken: a loss is not asked about targets whose scale is not known yet.
    with_losses: bool = True
    block: int | None = None  #: As `GradientPass` has them
    with_gram: bool = False

    def __call__(self, machine: Machine, chunk: BatchChunk) -> ScoredChunk:
        inputs, targets, expansion = machine.inputs, machine.targets, machine.expansion
        encoded = encode(inputs, targets, chunk)
        X = np.ascontiguousarray(inputs.scaler.as_of_now(encoded.values).astype(expansion.dtype))
        keys, K, learned = inputs.columns.keys, targets.n_outputs, encoded.learned
        scores = padded(machine.solution.scores(X, keys, _NO_KEYS), K)
        # Gradients are taken at the last solution.
        is_last = machine.solution is expansion
        at_last = scores[learned] if is_last else padded(expansion.scores(X[learned], keys, _NO_KEYS), K)
        of_targets = Encoded(encoded.y, np.tile(self.before, (len(X), 1)))
        rows = ScoredRows(X[learned], encoded.y[learned], encoded.weights[learned], at_last)
        if self.with_losses:
            gradients = GradientPass(targets, (), self.block, self.with_gram)
            losses, sums = targets.losses(of_targets, scores), gradients(machine, rows)
        else:
            losses, sums = (
                np.full(len(X), np.nan),
                GradientSums(len(rows.w), np.zeros(K), 0, 0.0, 0.0, np.zeros(0), 0.0),
            )
        return ScoredChunk(encoded, BatchResult(of_targets, scores, losses), rows, sums)


@dataclass(frozen=True)
class GradientPass:
    """The gradients of rows after some moves of this step."""

    targets: Targets  #: As they are by now
    moves: tuple[Move, ...] = ()  #: What became of blocks in this step so far
    #: The number of a block whose sums are taken, too, because it will be asked for most likely; None: of none.
    block: int | None = None
    with_gram: bool = False  #: Whether the step is preconditioned

    def __call__(self, machine: Machine, rows: ScoredRows) -> GradientSums:
        scores = moved(machine, rows, self.moves)
        targets: Any = self.targets
        g, w = weighted(targets, rows, scores)
        norms = np.sqrt(np.einsum("ik,ik->i", g, g))
        learning = targets if isinstance(targets, LearningTargets) else None
        return GradientSums(
            len(w),
            g.sum(axis=0),
            int(g.any(axis=1).sum()),
            float(norms.max(initial=0.0)),
            float(w.max(initial=0.0)),
            np.zeros(0) if learning is None else learning.observed(rows.y, scores, w),
            0.0 if learning is None else learning.slope(scores, w),
            NO_BLOCK if self.block is None else block_sums(machine, rows, self.block, g, self.with_gram),
        )


@dataclass(frozen=True)
class BlockPass:
    """The gradient of a block's coefficients, and what else a step of them needs."""

    block: int  #: The number of the block
    targets: Targets  #: As `GradientPass` has them
    moves: tuple[Move, ...]
    with_gram: bool  #: Whether the step is preconditioned

    def __call__(self, machine: Machine, rows: ScoredRows) -> BlockSums:
        g, _ = weighted(self.targets, rows, moved(machine, rows, self.moves))
        return block_sums(machine, rows, self.block, g, self.with_gram)


def block_sums(machine: Machine, rows: ScoredRows, block: int, g: Array, with_gram: bool) -> BlockSums:
    """The sums of a block, of the rows' gradients times their weights, (n, K), and with the Gram matrix if wanted."""
    expansion, keys, w = machine.expansion, machine.inputs.columns.keys, rows.w
    D = expansion.width
    gradient, part = np.zeros((g.shape[1], D)), np.empty((g.shape[1], D))
    gram = np.zeros((D, D) if with_gram else (0, 0))
    squares = 0.0
    for some in _slices(len(w)):
        phi = expansion.features(block, rows.X[some], keys)
        mean_outer(phi, g[some] * len(phi), part)
        gradient += part
        if with_gram:
            P = phi * np.sqrt(w[some])[:, None]
            add_gram(P, 0, len(P), 0, 1.0, gram)
            squares += float(np.einsum("ij,ij->", P, P))
    return BlockSums(gradient, gram, squares, float(w.sum()))


@dataclass(frozen=True)
class GramPass:
    """The second moments of a block's features, of which the longest step follows that they allow."""

    block: int

    def __call__(self, machine: Machine, rows: ScoredRows) -> BlockSums:
        return block_sums(machine, rows, self.block, np.zeros((len(rows.w), 0)), with_gram=True)


def kept(machine: Any, rows: ScoredRows, function: Any) -> ScoredRows:
    """The rows after the moves of a pass, of which later passes need to make those that follow only."""
    moves = getattr(function, "moves", ())
    return rows._replace(scores=moved(machine, rows, moves), n_moves=max(len(moves), rows.n_moves))


def moved(machine: Machine, rows: ScoredRows, moves: Sequence[Move]) -> Array:
    """The scores of rows after some moves, float64 of shape (n, K)."""
    if len(moves) <= rows.n_moves:
        return rows.scores
    scores = rows.scores.copy()
    for move in moves[rows.n_moves :]:
        scores *= move.shrink
        for some in _slices(len(scores)):
            phi = machine.expansion.features(move.block, rows.X[some], machine.inputs.columns.keys)
            add_products(phi.astype(np.float64), move.delta, scores[some])
    return scores


def weighted(targets: Any, rows: ScoredRows, scores: Array) -> tuple[Array, Array]:
    """The gradients times the weights, (n, K), and the weights; NotFiniteError where they are too large."""
    if not len(rows.y):  # a part may have none, which no loss of a user's need take
        return np.zeros(scores.shape), rows.w
    g = targets.gradient(rows.y, scores)
    if is_own(targets.loss):
        require_finite_gradient(targets.loss, g, rows.y, scores)
    elif not np.abs(g).max() <= LARGEST:  # NaN is not
        raise diverged(targets.loss)
    return g * rows.w[:, None], rows.w


def _slices(n: int) -> list[slice]:
    return [slice(start, start + AT_ONCE) for start in range(0, n, AT_ONCE)]
