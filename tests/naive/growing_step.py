"""Twins of the growing machine's step: scores on arrival, the check (9) of all blocks, the move of one."""

import math

import numpy as np

from tests.naive.features import add_scores
from tests.naive.moments import scale


def score_rows(values, learned, standardize, limit, is_number, W, alpha, n_features, factor):
    """Rows scaled, and their scores."""
    X = np.array(scale(values, learned, standardize, limit, is_number)[0])
    return X, factor * add_scores(X, W, alpha, 0, n_features, np.zeros((len(X), len(alpha))))


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


def choose_block(g, weights, by_class, gamma, variance, beta):
    """Block, margin, whether anything pulls, the weighted gradients and their mean."""
    weighted = g * weights[:, None]
    gbar = weighted.mean(axis=0)
    block, margin = (checked_by_class if by_class else checked_block)(beta, gbar, gamma, variance)
    return block, math.nan if block < 0 else margin, weighted.any(), weighted, gbar


def move_block(block, gamma, factor, most, G, gbar, alpha, beta):
    """What the coefficients move by, the coefficients, and beta."""
    delta, alpha, beta = -gamma * G, alpha.copy(), beta.copy()
    F = G.shape[1] // 2
    own = alpha[:, :, block * F : (block + 1) * F]
    own[:] = np.clip(own + np.clip(delta / factor, -most, most).reshape(own.shape), -most, most)
    if len(beta):
        beta[block] -= gamma * gbar
    return delta, alpha, beta
