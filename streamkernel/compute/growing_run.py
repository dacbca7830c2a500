"""Usual steps of the growing machine, one after the other: records are scored, wait for a step, and it is taken.

A call goes on until something is to be done in Python, which then calls again where the run stopped.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.cholesky import add_products, ridge_solution
from streamkernel.compute.experts import softmax_rows
from streamkernel.compute.features import Scaling, mean_outer, paired_features
from streamkernel.compute.gaussians import mix64
from streamkernel.compute.growing_step import choose_block, move_block, score_rows
from streamkernel.compute.jit import Array, jit

#: Where a run goes on, or stops: records arrive; a step begins; gradients are computed, then known; the block is known;
#: so are its features; no record pulls; there are no more records; a preconditioned step is not finite.
ARRIVE, BEGIN, GRADIENT, CHOOSE, PROJECT, MOVE, REST, END, TOO_LARGE = range(9)
#: The whole numbers of a run: records taken, records that wait, updates of this step, its block and all blocks, steps,
#: and updates of old blocks.
ROW, N_WAITING, NUMBER, BLOCK, N_BLOCKS, T, N_REUSED = range(7)
#: Others: the global scale, the margin of this update and of the last checked reuse, and the ridge.
SCALE, MARGIN, LAST_MARGIN, RIDGE = range(4)
#: How far a sum of K products may be off, in K times the sum of their sizes: more than any order of the terms leads to.
ROUNDING, LEAST = 1e-15, 1e-290


class Arriving(NamedTuple):
    """Records as they come: values (n, d), which of them are learned, targets (n, m), weights; scores, to be filled."""

    values: Array
    learned: Array
    y: Array
    w: Array
    scores: Array


class Waiting(NamedTuple):
    """The room of a mini-batch of B: scaled rows (B, d), targets (B, m), weights, scores (B, K)."""

    X: Array
    y: Array
    w: Array
    scores: Array


class Coefficients(NamedTuple):
    """W, the polynomial of its features, and alpha and beta with room, as kernels of a step have them."""

    W: Array
    sine: Array
    alpha: Array
    beta: Array


class Naming(NamedTuple):
    """What names a block: inequality (9), perhaps class by class, or turns of `grow` new ones in `period` steps.

    `most` is the number of blocks there may be.
    """

    checks: bool
    by_class: bool
    grow: int
    period: int
    seed: Any
    most: int


class Rule(NamedTuple):
    """What steps are taken by.

    - naming: What names a block.
    - gammas: Sizes of steps and their squares, (n, 2), from step `first` on.
    - heaviest, variance: The largest weight of a mini-batch, 1 at least, and v.
    - regularization, curvature: nu and L.
    - is_softmax: Whether gradients are those of the softmax.
    - preconditioned, stops: Whether moves are a ridge regression's, and whether the run stops before all changes.
    - per_step: Blocks of a step, and how many there is room for.
    - most, least: Where moves are cut, and where the scale is folded.
    """

    naming: Naming
    gammas: Array
    first: int
    heaviest: float
    variance: float
    regularization: float
    curvature: float
    is_softmax: bool
    preconditioned: bool
    stops: bool
    per_step: int
    room: int
    most: float
    least: float


class Workspace(NamedTuple):
    """Gradients (B, K), weighted ones, their mean, features (B, 2 F), weighted ones or none, and the move (K, 2 F)."""

    g: Array
    weighted: Array
    gbar: Array
    phi: Array
    P: Array
    G: Array


@jit
def surely_closest(beta: Array, gbar: Array) -> int:
    """The block of the largest <beta, gbar>; -1 where rounding might say another."""
    best, highest, size = -1, -np.inf, 0.0
    for k in range(beta.shape[0]):
        total, own = _product(beta[k], gbar)
        if total > highest:
            best, highest, size = k, total, own
    for k in range(beta.shape[0]):
        total, own = _product(beta[k], gbar)
        if k != best and not highest - total > gbar.shape[0] * (ROUNDING * (size + own) + LEAST):
            return -1
    return best


@jit
def _product(a: Array, b: Array) -> Any:
    """A product, and the sum of the sizes of its terms."""
    total, size = 0.0, 0.0
    for c in range(b.shape[0]):
        total += a[c] * b[c]
        size += abs(a[c] * b[c])
    return total, size


@jit
def named_block(naming: Naming, t: int, n_blocks: int) -> Any:
    """The block that update t has by turns: the next one, or an old one, picked uniformly."""
    if n_blocks < naming.most and (t % naming.period < naming.grow or not n_blocks):
        return n_blocks
    word = mix64(mix64(naming.seed) ^ np.uint64(t))
    n, half, low = np.uint64(n_blocks), np.uint64(32), np.uint64(0xFFFFFFFF)
    return np.int64(((word >> half) * n + (((word & low) * n) >> half)) >> half)


@jit
def take_rows(
    arriving: Arriving, scaling: Scaling, waiting: Waiting, own: Coefficients, F: int, at: Array, scale: float
) -> None:
    """Score records until the mini-batch is full, and let those wait that are learned."""
    first, n = at[ROW], at[N_WAITING]
    stop = first
    while stop < arriving.learned.shape[0] and n < waiting.w.shape[0]:
        n += arriving.learned[stop]
        stop += 1
    if stop == first:
        return
    values, learned, scores = arriving.values[first:stop], arriving.learned[first:stop], arriving.scores[first:stop]
    X: Array = np.empty(values.shape, waiting.X.dtype)
    moments = scaling.standardize, scaling.limit, scaling.is_number, scaling.moments
    score_rows(values, learned, *moments, own.W, own.alpha, at[N_BLOCKS] * F, scale / np.sqrt(F), own.sine, X, scores)
    n = at[N_WAITING]
    for i in range(stop - first):
        if learned[i]:
            waiting.w[n] = arriving.w[first + i]
            for j in range(X.shape[1]):
                waiting.X[n, j] = X[i, j]
            for j in range(X.shape[1], waiting.X.shape[1]):
                waiting.X[n, j] = 0
            for j in range(arriving.y.shape[1]):
                waiting.y[n, j] = arriving.y[first + i, j]
            for o in range(scores.shape[1]):
                waiting.scores[n, o] = scores[i, o]
            n += 1
    at[ROW], at[N_WAITING] = stop, n


@jit
def has_rule(waiting: Waiting, rule: Rule, at: Array) -> Any:
    """Whether a rule says all of the next step: its size, the variance by its weights, and there is room for blocks."""
    heaviest = 1.0
    for i in range(waiting.w.shape[0]):
        heaviest = max(heaviest, waiting.w[i])
    is_known = at[T] < rule.first + rule.gammas.shape[0] and heaviest == rule.heaviest
    return is_known and at[N_BLOCKS] + rule.per_step <= rule.room


@jit
def shrink(rule: Rule, own: Coefficients, at: Array, numbers: Array) -> Any:
    """Multiply all coefficients, most often by the global scale alone, and all beta by what a step shrinks them by."""
    factor = max(1 - rule.gammas[at[T] - rule.first, 0] * rule.regularization, -1.0)
    folds = numbers[SCALE] * factor < rule.least
    numbers[SCALE] *= factor
    if folds:
        for c in range(own.alpha.shape[0]):
            for part in range(own.alpha.shape[1]):
                for i in range(own.alpha.shape[2]):
                    own.alpha[c, part, i] *= own.alpha.dtype.type(numbers[SCALE])
        numbers[SCALE] = 1.0
    for k in range(min(at[N_BLOCKS], own.beta.shape[0])):
        for c in range(own.beta.shape[1]):
            own.beta[k, c] *= factor
    return factor


@jit
def choose(waiting: Waiting, rule: Rule, own: Coefficients, work: Workspace, at: Array, numbers: Array) -> Any:
    """Choose the block that the gradients update, -1 where it is to be named in Python; whether a record pulls."""
    naming, n_blocks = rule.naming, at[N_BLOCKS]
    gamma, squared = rule.gammas[at[T] - rule.first, 0], rule.gammas[at[T] - rule.first, 1]
    beta = own.beta[:n_blocks]
    block, margin, pulls = choose_block(
        work.g, waiting.w, naming.by_class, gamma, squared, rule.variance, beta, work.weighted, work.gbar
    )
    if not naming.checks:
        block, margin = named_block(naming, at[T] * rule.per_step + at[NUMBER], n_blocks), np.nan
    elif block < 0:
        block = n_blocks if n_blocks < naming.most else surely_closest(beta, work.gbar)
    at[BLOCK], numbers[MARGIN] = block, margin
    return pulls


@jit
def move(waiting: Waiting, rule: Rule, own: Coefficients, work: Workspace, at: Array, numbers: Array) -> Any:
    """Move the block by its features; False, and nothing is changed, where that is not finite."""
    block, G = at[BLOCK], work.G
    if not rule.preconditioned:
        mean_outer(work.phi, work.weighted, G)
    elif not ridge_solution(work.phi, work.P, work.g, waiting.w, numbers[RIDGE], rule.curvature, G):
        return False
    factor = shrink(rule, own, at, numbers)
    gamma = rule.gammas[at[T] - rule.first, 0]
    move_block(block, gamma, numbers[SCALE], rule.most, G, work.gbar, own.alpha, own.beta)
    if block == at[N_BLOCKS]:
        at[N_BLOCKS] += 1
    else:
        at[N_REUSED] += 1
        if not (rule.preconditioned or np.isnan(numbers[MARGIN])):
            numbers[LAST_MARGIN] = numbers[MARGIN]
    at[NUMBER] += 1
    if at[NUMBER] < rule.per_step:
        for i in range(waiting.scores.shape[0]):
            for o in range(waiting.scores.shape[1]):
                waiting.scores[i, o] *= factor
        add_products(work.phi.astype(np.float64), G, waiting.scores)
    return True


@jit
def take_steps(
    stage: int,
    arriving: Arriving,
    scaling: Scaling,
    waiting: Waiting,
    rule: Rule,
    own: Coefficients,
    work: Workspace,
    at: Array,
    numbers: Array,
) -> int:
    """Take records and steps from a stage on; returns the stage before which there is something to be done in Python.

    - stage: ARRIVE to begin with, then the stage that was returned.
    - at, numbers: What changes, by the names above.
    """
    F = work.phi.shape[1] // 2
    while True:
        if stage == ARRIVE:
            take_rows(arriving, scaling, waiting, own, F, at, numbers[SCALE])
            if at[N_WAITING] < waiting.w.shape[0]:
                return END
            stage = BEGIN
        if stage == BEGIN:
            if not has_rule(waiting, rule, at):
                return BEGIN
            stage = GRADIENT
        if stage == GRADIENT:
            if not rule.is_softmax:
                return CHOOSE
            softmax_rows(waiting.scores, work.g)
            for i in range(work.g.shape[0]):
                work.g[i, int(waiting.y[i, 0])] -= 1.0
            stage = CHOOSE
        if stage == CHOOSE:
            stage = PROJECT if choose(waiting, rule, own, work, at, numbers) else REST
            if (stage == PROJECT and at[BLOCK] < 0) or (stage == REST and rule.stops):
                return stage
        if stage == REST:
            shrink(rule, own, at, numbers)
            at[NUMBER] = rule.per_step
        if stage == PROJECT:
            paired_features(waiting.X, own.W, at[BLOCK] * F, own.sine, work.phi)
            for i in range(work.P.shape[0]):
                root = np.sqrt(waiting.w[i])
                for j in range(work.P.shape[1]):
                    work.P[i, j] = work.phi[i, j] * root
            stage = MOVE
            if rule.stops:
                return MOVE
        if stage == MOVE and not move(waiting, rule, own, work, at, numbers):
            return TOO_LARGE
        stage = GRADIENT
        if at[NUMBER] == rule.per_step:
            at[NUMBER] = at[N_WAITING] = 0
            at[T] += 1
            stage = ARRIVE
