"""Twins of the growing machine's steps, each one of whole arrays."""

import math
from fractions import Fraction

import numpy as np

from tests.naive.cholesky import ridge_solution
from tests.naive.features import add_scores, paired_features
from tests.naive.gaussians import mix64
from tests.naive.softmax import softmax_rows


def _margin(beta, gbar, gamma, variance):
    """By how much (9) holds of a block or, of single numbers, of a class."""
    before, after = np.array(beta), np.array(beta) - gamma * np.array(gbar)
    right = (before**2).sum() + gamma**2 * (np.array(gbar) ** 2).sum()
    return right - 2 * (after**2).sum() - 2 * gamma**2 * variance


def checked_block(beta, gbar, gamma, variance):
    if not len(beta):
        return -1, -math.inf
    margins = [_margin(own, gbar, gamma, variance) for own in beta]
    best = max(range(len(beta)), key=margins.__getitem__)
    return (best, margins[best]) if margins[best] >= 0 else (-1, -math.inf)


def checked_by_class(beta, gbar, gamma, variance):
    if not len(beta):
        return -1, math.inf
    margins = [[_margin(b, g, gamma, variance) for b, g in zip(own, gbar, strict=True)] for own in beta]
    shares = [sum(abs(g) for g, m in zip(gbar, own, strict=True) if m >= 0) for own in margins]
    best = max(range(len(beta)), key=shares.__getitem__)
    passing = [m for m in margins[best] if m >= 0]
    if not passing or shares[best] < 0.3 * sum(map(abs, gbar)):
        return -1, math.inf
    return best, min(passing)


def move_block(block, gamma, factor, most, G, gbar, alpha, beta):
    """What the coefficients move by, the coefficients, and beta."""
    delta, alpha, beta = -gamma * G, alpha.copy(), beta.copy()
    F = G.shape[1] // 2
    own = alpha[:, :, block * F : (block + 1) * F]
    own[:] = np.clip(own + np.clip(delta / factor, -most, most).reshape(own.shape), -most, most)
    if len(beta):
        beta[block] -= gamma * gbar
    return delta, alpha, beta


def _product(a, b):
    terms = [Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, b, strict=True)]
    return sum(terms), sum(map(abs, terms))


def surely_closest(beta, gbar):
    """The first of the largest, and by how much it is: what it is above the others by, in the sum of their sizes."""
    products = [_product(own, gbar) for own in beta]
    best = max(range(len(beta)), key=lambda k: products[k][0])
    highest, size = products[best]
    gaps = [
        (highest - total) / (size + own) if size + own else 0 for k, (total, own) in enumerate(products) if k != best
    ]
    return best, float(min(gaps, default=1))


def named_block(grow, period, seed, most, t, n_blocks):
    if n_blocks < most and (t % period < grow or n_blocks == 0):
        return n_blocks
    return (int(mix64(int(mix64(seed)) ^ t)) * n_blocks) >> 64


def begin(weights, heaviest, t, last, n_blocks, per_step, room):
    return t < last and max(1.0, *weights) == heaviest and n_blocks + per_step <= room


def shrink(factor, scale, least, alpha, beta):
    """The global scale, the coefficients and beta."""
    scale *= factor
    return (1.0, alpha * scale, beta * factor) if scale < least else (scale, alpha, beta * factor)


def take_rows(n_waiting, size, learned):
    """Which of the records come, and which of them wait."""
    stop = 0
    while stop < len(learned) and n_waiting < size:
        n_waiting += bool(learned[stop])
        stop += 1
    return range(stop), [i for i in range(stop) if learned[i]]


def choose(g, weights, naming, gamma, variance, beta, t, n_blocks):
    """The block and its margin, None where no record pulls, and the mean gradient."""
    weighted = g * weights[:, None]
    gbar = weighted.mean(axis=0)
    block, margin = (checked_by_class if naming["by_class"] else checked_block)(beta, gbar, gamma, variance)
    if not naming["checks"]:
        own = (naming[name] for name in ("grow", "period", "seed", "most"))
        block, margin = named_block(*own, t, n_blocks), math.nan
    elif block < 0:
        block, margin = n_blocks if n_blocks < naming["most"] else surely_closest(beta, gbar)[0], math.nan
    return (block if weighted.any() else None), margin, gbar


def move(X, W, F, block, g, weights, gbar, gamma, curvature, scale, alpha, beta):
    """What the coefficients move by, these, and beta; preconditioned where there is a curvature."""
    phi = paired_features(X, W, block * F, F)
    G = (g * weights[:, None]).T @ phi / len(g)
    if curvature:
        ridge = (weights[:, None] * phi**2).sum() / weights.sum()
        G = ridge_solution(phi, g, weights, ridge, curvature)
    return phi, *move_block(block, gamma, scale, 1e30, G, gbar, alpha, beta)


def take_steps(X, learned, y, w, size, W, F, model, naming, sizes, variance, regularization, curvature, per_step):
    """The scores of rows that are scaled, and the model after all steps: alpha, beta, scale and the counts."""
    alpha, beta, scale, n_blocks, n_reused, last = model
    out, start, t = np.zeros((len(X), len(alpha))), 0, 0
    while start < len(X):
        rows, waiting = take_rows(0, size, learned[start:])
        for i in rows:
            zeros = np.zeros((1, len(alpha)))
            scores = add_scores(X[start + i : start + i + 1], W, alpha, 0, n_blocks * F, zeros)
            out[start + i] = scale / math.sqrt(F) * scores[0]
        own = [start + i for i in waiting]
        start += len(rows)
        if len(own) < size:
            break
        scores, gamma = out[own].copy(), sizes[t]
        for number in range(per_step):
            g = softmax_rows(scores)
            g[range(size), y[own].astype(int)] -= 1
            update = t * per_step + number
            block, margin, gbar = choose(g, w[own], naming, gamma, variance, beta[:n_blocks], update, n_blocks)
            factor = max(1 - gamma * regularization, -1)
            scale, alpha, beta = shrink(factor, scale, 1e-6, alpha, beta)
            if block is None:
                break
            phi, delta, alpha, beta = move(X[own], W, F, block, g, w[own], gbar, gamma, curvature, scale, alpha, beta)
            n_blocks, n_reused = n_blocks + (block == n_blocks), n_reused + (block < n_blocks)
            last = last if curvature or math.isnan(margin) else margin
            scores = factor * scores + phi @ delta.T
        t += 1
    return out, alpha, beta, scale, n_blocks, n_reused, last
