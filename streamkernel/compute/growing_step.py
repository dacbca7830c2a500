"""A step of the growing machine: records are scored as they arrive, a block is chosen by inequality (9), and it moves.

What a loss or a policy says in Python comes between these kernels, which change nothing before they are past all that
may fail.
"""

from typing import Any

import numpy as np

from streamkernel.compute.features import add_scores, column_means
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.moments import scale

#: The share of sum |gbar_c| that the classes which pass must hold.
PASSING_SHARE = 0.3


@jit
def score_rows(
    values: Array,
    learned: Array,
    standardize: bool,
    limit: float,
    is_number: Array,
    moments: Array,
    W: Array,
    alpha: Array,
    n_features: int,
    factor: float,
    sine: Array,
    X: Array,
    scores: Array,
) -> None:
    """Scale rows as `scale` does, into X (n, d), and fill their scores (n, K): a factor times those of `add_scores`."""
    scale(values, learned, standardize, limit, is_number, moments, 0, X)
    for r in range(scores.shape[0]):
        for o in range(scores.shape[1]):
            scores[r, o] = 0.0
    add_scores(X, W, alpha, 0, n_features, sine, scores)
    for r in range(scores.shape[0]):
        for o in range(scores.shape[1]):
            scores[r, o] *= factor


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
def choose_block(
    g: Array,
    weights: Array,
    by_class: bool,
    gamma: float,
    squared: float,
    variance: float,
    beta: Array,
    weighted: Array,
    gbar: Array,
) -> Any:
    """Weight the gradients of a mini-batch, and choose the block that they update by inequality (9).

    - g, weights: The gradients, (B, K), and the weights, (B,).
    - by_class: Whether (9) is asked for class by class.
    - gamma, squared, variance, beta: As `checked_block` has them.
    - weighted, gbar: Filled: the weighted gradients, and their mean.

    Returns the block, -1 where none passes, by how much (9) holds, and whether a gradient is not 0.
    """
    pulls = False
    for i in range(g.shape[0]):
        for c in range(g.shape[1]):
            weighted[i, c] = g[i, c] * weights[i]
            pulls = pulls or weighted[i, c] != 0.0
    means = column_means(weighted)
    for c in range(g.shape[1]):
        gbar[c] = means[c]
    if by_class:
        block, margin = checked_by_class(beta, gbar, gamma, squared, variance)
    else:
        block, margin = checked_block(beta, gbar, gamma, squared, variance)
    return block, margin if block >= 0 else np.nan, pulls


@jit
def move_block(
    block: int, gamma: float, factor: float, most: float, G: Array, gbar: Array, alpha: Array, beta: Array
) -> None:
    """Move a block by -gamma G, which takes the place of G (K, 2 F).

    - block: The block.
    - gamma: The step.
    - factor: The scale of all coefficients.
    - most: Where moves and coefficients are cut.
    - gbar, alpha, beta: The mean gradient, (K,), the coefficients, (K, 2, room), and beta, (blocks, K), or none.
    """
    F = G.shape[1] // 2
    largest = alpha.dtype.type(most)
    for c in range(G.shape[0]):
        for part in range(2):
            own = alpha[c, part, block * F : (block + 1) * F]
            for i in range(F):
                G[c, part * F + i] *= -gamma
                moved = min(max(G[c, part * F + i] / factor, -most), most)
                own[i] = min(max(own[i] + alpha.dtype.type(moved), -largest), largest)
        if beta.shape[0]:
            beta[block, c] -= gamma * gbar[c]
