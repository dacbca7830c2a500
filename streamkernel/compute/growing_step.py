"""Steps of the growing machine, one after the other: records are scored and wait for a step, which moves a block.

A call continues until something is to be done in Python, which then calls again where the run stopped. The block is
chosen by inequality (9), or by turns.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.cholesky import add_products, ridge_solution
from streamkernel.compute.experts import softmax_rows
from streamkernel.compute.features import Scaling, add_scores, column_means, mean_outer, paired_features
from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.moments import scale

#: The share of sum |gbar_c| that the classes which pass must hold.
PASSING_SHARE = 0.3
#: Where a run continues, or stops: records arrive; a step begins; gradients are computed, then known; the block is
#: known; so are its features; no record pulls; there are no more records; a preconditioned step is not finite.
ARRIVE, BEGIN, GRADIENT, CHOOSE, PROJECT, MOVE, REST, END, TOO_LARGE = range(9)
#: The whole numbers of a run: records taken, records that wait, updates of this step, its block and all blocks, steps,
#: and updates of old blocks.
ROW, N_WAITING, NUMBER, BLOCK, N_BLOCKS, T, N_REUSED = range(7)
#: Others: the global scale, the size of the step and its square, which Python rounds in its own way, the margin of this
#: update and of the last checked reuse, and the ridge.
SCALE, GAMMA, SQUARED, MARGIN, LAST_MARGIN, RIDGE = range(6)
#: How far a sum of K products may be off, in K times the sum of their sizes: more than any order of the terms leads to.
ROUNDING, LEAST = 1e-15, 1e-290


class Arriving(NamedTuple):
    """Records as they come: values (n, d), which of them are learned, targets (n, m), weights; scores, to be filled."""

    values: Array
    learned: Array
    y: Array
    w: Array
    scores: Array


class Room(NamedTuple):
    """Of a mini-batch of B: scaled rows (B, d), targets (B, m), weights, scores (B, K), gradients, weighted ones, their
    mean, features (B, 2 F), weighted ones or none, and the move (K, 2 F)."""

    X: Array
    y: Array
    w: Array
    scores: Array
    g: Array
    weighted: Array
    gbar: Array
    phi: Array
    P: Array
    G: Array


class Solution(NamedTuple):
    """Frequencies, the polynomial of their features, alpha (K, 2, room) and beta (room, K) or none."""

    W: Array
    sine: Array
    alpha: Array
    beta: Array


class Rule(NamedTuple):
    """What steps are taken by.

    - sizes: Of steps, and their squares, (n, 2), from step `first` on.
    - heaviest, variance: The largest weight of a mini-batch, 1 at least, and v.
    - checks, by_class: Whether (9) names a block, and class by class; or else `grow` new ones in `period` steps.
    - seed, most: The seed, and the most blocks.
    - is_softmax: Whether gradients are those of the softmax.
    - preconditioned, stops: Whether moves are a ridge regression's, and whether the run stops before all changes.
    - per_step, n_room: Blocks of a step, and how many there is room for.
    - regularization, curvature: nu and L.
    - largest, smallest: Where coefficients are cut, and where the global scale is folded into them.
    """

    sizes: Array
    first: int
    heaviest: float
    variance: float
    checks: bool
    by_class: bool
    grow: int
    period: int
    seed: Any
    most: int
    is_softmax: bool
    preconditioned: bool
    stops: bool
    per_step: int
    n_room: int
    regularization: float
    curvature: float
    largest: float
    smallest: float


@jit
def _margin(beta2: float, b: float, gbar2: float, gamma: float, squared: float, variance: float) -> Any:
    """By how much (9) holds at gamma. Its square is an argument, because Python rounds a power in its own way."""
    return beta2 + squared * gbar2 - (2 * (beta2 - 2 * gamma * b + squared * gbar2) + 2 * squared * variance)


@jit
def checked_block(beta: Array, gbar: Array, gamma: float, squared: float, variance: float) -> Any:
    """The block where (9) holds by most at gamma, and by how much; -1 where it holds of none.

    - beta, gbar: Of shapes (blocks, K) and (K,).
    - gamma, squared: The step, and its square.
    - variance: v.
    """
    best, held = -1, -np.inf
    for k in range(beta.shape[0]):
        beta2, b, gbar2 = beta[k, 0] * beta[k, 0], beta[k, 0] * gbar[0], gbar[0] * gbar[0]
        for c in range(1, gbar.shape[0]):
            beta2 += beta[k, c] * beta[k, c]
            b += beta[k, c] * gbar[c]
            gbar2 += gbar[c] * gbar[c]
        own = _margin(beta2, b, gbar2, gamma, squared, variance)
        if own >= 0.0 and own > held:
            best, held = k, own
    return best, held


@jit
def checked_by_class(beta: Array, gbar: Array, gamma: float, squared: float, variance: float) -> Any:
    """The block whose classes that pass at gamma hold most of the gradient, and the least margin of these; or -1.

    Arguments are those of `checked_block`.
    """
    best, largest, held, total = -1, 0.0, np.inf, 0.0
    for c in range(gbar.shape[0]):
        total += abs(gbar[c])
    for k in range(beta.shape[0]):
        share, least = 0.0, np.inf
        for c in range(gbar.shape[0]):
            own = _margin(beta[k, c] * beta[k, c], beta[k, c] * gbar[c], gbar[c] * gbar[c], gamma, squared, variance)
            if own >= 0.0:
                share += abs(gbar[c])
                least = min(least, own)
        if best < 0 or share > largest:
            best, largest, held = k, share, least
    return (best, held) if held < np.inf and not largest < PASSING_SHARE * total else (-1, held)


@jit
def surely_closest(beta: Array, gbar: Array) -> int:
    """The block of the largest <beta, gbar>; -1 where rounding might say another."""
    best, highest, size = -1, -np.inf, 0.0
    for again in range(2):
        for k in range(beta.shape[0]):
            total, own = 0.0, 0.0
            for c in range(gbar.shape[0]):
                total += beta[k, c] * gbar[c]
                own += abs(beta[k, c] * gbar[c])
            if not again and total > highest:
                best, highest, size = k, total, own
            elif again and k != best and not highest - total > gbar.shape[0] * (ROUNDING * (size + own) + LEAST):
                return -1
    return best


@jit
def named_block(rule: Rule, t: int, n_blocks: int) -> Any:
    """The block that update t has by turns: the next one, or an old one, picked uniformly."""
    if n_blocks < rule.most and (t % rule.period < rule.grow or not n_blocks):
        return n_blocks
    word = mix64(mix64(rule.seed) ^ np.uint64(t))
    n, half, low = np.uint64(n_blocks), np.uint64(32), np.uint64(0xFFFFFFFF)
    return np.int64(((word >> half) * n + (((word & low) * n) >> half)) >> half)


@jit
def take_rows(arriving: Arriving, scaling: Scaling, room: Room, own: Solution, at: Array, numbers: Array) -> None:
    """Score records until the mini-batch is full, and let those wait that are learned."""
    first, n, F = at[ROW], at[N_WAITING], room.phi.shape[1] // 2
    stop = first
    while stop < arriving.learned.shape[0] and n < room.w.shape[0]:
        n += arriving.learned[stop]
        stop += 1
    values, learned, scores = arriving.values[first:stop], arriving.learned[first:stop], arriving.scores[first:stop]
    X: Array = np.empty(values.shape, room.X.dtype)
    scale(values, learned, scaling.standardize, scaling.limit, scaling.is_number, scaling.moments, 0, X)
    for i in range(stop - first):
        for o in range(scores.shape[1]):
            scores[i, o] = 0.0
    add_scores(X, own.W, own.alpha, 0, at[N_BLOCKS] * F, own.sine, scores)
    factor, n = numbers[SCALE] / np.sqrt(F), at[N_WAITING]
    for i in range(stop - first):
        for o in range(scores.shape[1]):
            scores[i, o] *= factor
        if learned[i]:
            room.w[n] = arriving.w[first + i]
            for j in range(room.X.shape[1]):
                room.X[n, j] = X[i, j] if j < X.shape[1] else 0
            for j in range(arriving.y.shape[1]):
                room.y[n, j] = arriving.y[first + i, j]
            for o in range(scores.shape[1]):
                room.scores[n, o] = scores[i, o]
            n += 1
    at[ROW], at[N_WAITING] = stop, n


@jit
def begin(room: Room, rule: Rule, at: Array, numbers: Array) -> Any:
    """Whether a rule says all of the next step: its size, the variance by its weights, and there is room for blocks."""
    heaviest, k = 1.0, at[T] - rule.first
    for i in range(room.w.shape[0]):
        heaviest = max(heaviest, room.w[i])
    if k >= rule.sizes.shape[0] or heaviest != rule.heaviest or at[N_BLOCKS] + rule.per_step > rule.n_room:
        return False
    numbers[GAMMA], numbers[SQUARED] = rule.sizes[k, 0], rule.sizes[k, 1]
    return True


@jit
def choose(room: Room, rule: Rule, own: Solution, at: Array, numbers: Array) -> Any:
    """Choose the block that the gradients update, -1 where it is to be named in Python; whether a record pulls."""
    pulls, n_blocks, weighted = False, at[N_BLOCKS], room.weighted
    for i in range(weighted.shape[0]):
        for c in range(weighted.shape[1]):
            weighted[i, c] = room.g[i, c] * room.w[i]
            pulls = pulls or weighted[i, c] != 0.0
    means = column_means(weighted)
    for c in range(weighted.shape[1]):
        room.gbar[c] = means[c]
    beta, gamma, squared = own.beta[:n_blocks], numbers[GAMMA], numbers[SQUARED]
    if not rule.checks:
        block, margin = named_block(rule, at[T] * rule.per_step + at[NUMBER], n_blocks), np.nan
    elif rule.by_class:
        block, margin = checked_by_class(beta, room.gbar, gamma, squared, rule.variance)
    else:
        block, margin = checked_block(beta, room.gbar, gamma, squared, rule.variance)
    if block < 0:
        block, margin = n_blocks if n_blocks < rule.most else surely_closest(beta, room.gbar), np.nan
    at[BLOCK], numbers[MARGIN] = block, margin
    return pulls


@jit
def shrink(rule: Rule, own: Solution, at: Array, numbers: Array) -> Any:
    """Multiply all coefficients, most often by the global scale alone, and all beta by what a step shrinks them by."""
    factor, alpha = max(1 - numbers[GAMMA] * rule.regularization, -1.0), own.alpha
    folds = numbers[SCALE] * factor < rule.smallest
    numbers[SCALE] *= factor
    if folds:
        for c in range(alpha.shape[0]):
            for part in range(alpha.shape[1]):
                for i in range(alpha.shape[2]):
                    alpha[c, part, i] *= alpha.dtype.type(numbers[SCALE])
        numbers[SCALE] = 1.0
    for k in range(min(at[N_BLOCKS], own.beta.shape[0])):
        for c in range(own.beta.shape[1]):
            own.beta[k, c] *= factor
    return factor


@jit
def move(room: Room, rule: Rule, own: Solution, at: Array, numbers: Array) -> Any:
    """Move the block by its features; False, and nothing is changed, where that is not finite."""
    block, G, alpha, F = at[BLOCK], room.G, own.alpha, room.phi.shape[1] // 2
    if not rule.preconditioned:
        mean_outer(room.phi, room.weighted, G)
    elif not ridge_solution(room.phi, room.P, room.g, room.w, numbers[RIDGE], rule.curvature, G):
        return False
    factor, most, largest = shrink(rule, own, at, numbers), rule.largest, alpha.dtype.type(rule.largest)
    for c in range(G.shape[0]):
        for part in range(2):
            mine = alpha[c, part, block * F : (block + 1) * F]
            for i in range(F):
                G[c, part * F + i] *= -numbers[GAMMA]
                moved = min(max(G[c, part * F + i] / numbers[SCALE], -most), most)
                mine[i] = min(max(mine[i] + alpha.dtype.type(moved), -largest), largest)
        if own.beta.shape[0]:
            own.beta[block, c] -= numbers[GAMMA] * room.gbar[c]
    if block == at[N_BLOCKS]:
        at[N_BLOCKS] += 1
    else:
        at[N_REUSED] += 1
        if not (rule.preconditioned or np.isnan(numbers[MARGIN])):
            numbers[LAST_MARGIN] = numbers[MARGIN]
    at[NUMBER] += 1
    if at[NUMBER] < rule.per_step:
        for i in range(room.scores.shape[0]):
            for o in range(room.scores.shape[1]):
                room.scores[i, o] *= factor
        add_products(room.phi.astype(np.float64), G, room.scores)
    return True


@jit
def take_steps(
    stage: int,
    arriving: Arriving,
    scaling: Scaling,
    room: Room,
    rule: Rule,
    own: Solution,
    at: Array,
    numbers: Array,
) -> int:
    """Take records and steps from a stage on; returns the stage before which there is something to be done in Python.

    - stage: ARRIVE to begin with, then the stage that was returned.
    - at, numbers: What changes, by the names above.
    """
    while True:
        if stage == ARRIVE:
            if at[N_WAITING] < room.w.shape[0]:
                take_rows(arriving, scaling, room, own, at, numbers)
            if at[N_WAITING] < room.w.shape[0]:
                return END
            stage = BEGIN
        if stage == BEGIN:
            if not begin(room, rule, at, numbers):
                return BEGIN
            stage = GRADIENT
        if stage == GRADIENT:
            if not rule.is_softmax:
                return CHOOSE
            softmax_rows(room.scores, room.g)
            for i in range(room.g.shape[0]):
                room.g[i, int(room.y[i, 0])] -= 1.0
            stage = CHOOSE
        if stage == CHOOSE:
            stage = PROJECT if choose(room, rule, own, at, numbers) else REST
            if (stage == PROJECT and at[BLOCK] < 0) or (stage == REST and rule.stops):
                return stage
        if stage == REST:
            shrink(rule, own, at, numbers)
            at[NUMBER] = rule.per_step
        if stage == PROJECT:
            paired_features(room.X, own.W, at[BLOCK] * (room.phi.shape[1] // 2), own.sine, room.phi)
            for i in range(room.P.shape[0]):
                for j in range(room.P.shape[1]):
                    room.P[i, j] = room.phi[i, j] * np.sqrt(room.w[i])
            stage = MOVE
            if rule.stops:
                return MOVE
        if stage == MOVE and not move(room, rule, own, at, numbers):
            return TOO_LARGE
        stage = GRADIENT
        if at[NUMBER] == rule.per_step:
            at[NUMBER] = at[N_WAITING] = 0
            at[T] += 1
            stage = ARRIVE
