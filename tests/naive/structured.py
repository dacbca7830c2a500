"""Twins of structured features: signs, Walsh-Hadamard transforms by their matrices, and norms."""

import math

import numpy as np
from scipy.linalg import hadamard

from tests.naive.features import add_projected, cos_sin
from tests.naive.gaussians import GOLDEN, HALF_WORD, WORD, counted, mix64

#: The deviation of `counted`: of 48 bits, of two bytes.
COUNTED_DEVIATION = math.sqrt(48 / 4 * 256**2 + 2 * (256**2 - 1) / 12)


def _stack_word(seed, group, tile):
    base = mix64((seed + GOLDEN) % WORD)
    return mix64((mix64((base + (group + 1) * GOLDEN) % WORD) + tile * GOLDEN) % WORD)


def _draw_signs(word, n):
    return [mix64((word + i * GOLDEN) % WORD) % HALF_WORD for i in range(n)]


def _draw_norms(word, n, scale, m):
    """Three terms of a power, in float32, one rounding after each operation."""
    s = math.sqrt(2 / (9 * n))
    root, whole = math.sqrt(1 - s * s), math.sqrt(n) * scale
    a0 = np.float32(whole * root * root * root)
    a1 = np.float32(whole * 1.5 * root * s / COUNTED_DEVIATION)
    a2 = np.float32(whole * 0.375 / root * (s / COUNTED_DEVIATION) ** 2)
    rows = [(i + 1) * 0x9E3779B1 % HALF_WORD for i in range(m)]
    z = np.array([counted(word % HALF_WORD ^ row, word >> 32) for row in rows], np.float32)
    return a0 + z * (a1 + z * a2)


def _transform(data, words, n):
    """By the matrices themselves; the first sign of a word is its highest bit."""
    stacks = np.reshape(data, (n, 16)).astype(np.float64)
    words = np.reshape(words, (3, -1, 16))
    bits = [[[word >> (31 - i % 32) & 1 for word in turn[i // 32].tolist()] for i in range(n)] for turn in words]
    for signs in 1 - 2 * np.array(bits):
        stacks = hadamard(n) @ (signs * stacks)
    return stacks.ravel()


def _add_group(x, start, words, norms, n, turns, first):
    own = np.zeros(n)
    own[: len(x[start : start + n])] = x[start : start + n]
    turns = np.array(turns, np.float64)
    turns[first : first + 16 * n] += norms * _transform(np.repeat(own, 16), words, n)
    return turns


def draw_norms(groups, seed, scale, first, m):
    return [
        np.concatenate(
            [
                _draw_norms(mix64(_stack_word(seed, g, tile)), n, scale / n**1.5, 16 * n)
                for tile in range(first // (16 * n), (first + m) // (16 * n))
            ]
        )
        for g, n in enumerate(groups.sizes.tolist())
    ]


def add_turns(X, groups, seed, scale, first, turns):
    """Of whole widths: what there is after the last feature does no harm."""
    width = turns.shape[1]
    norms = draw_norms(groups, seed, scale, first, width)
    for g, (start, n) in enumerate(zip(*map(np.ndarray.tolist, groups), strict=True)):
        for at in range(0, width, 16 * n):
            words = _draw_signs(_stack_word(seed, g, (first + at) // (16 * n)), 3 * max(n // 32, 1) * 16)
            own = norms[g][at : at + 16 * n]
            turns = np.array([_add_group(x, start, words, own, n, t, at) for x, t in zip(X, turns, strict=True)])
    return turns


def structured_scores(X, groups, seed, scale, alpha, n_features, scores):
    """All features at once."""
    largest = 16 * int(groups.sizes.max())
    turns = add_turns(X, groups, seed, scale, 0, np.zeros((len(X), -(-n_features // largest) * largest)))
    return add_projected(turns[:, :n_features], alpha, 0, scores)


def structured_features(X, groups, seed, scale, first, F):
    largest = 16 * int(groups.sizes.max())
    turns = add_turns(X, groups, seed, scale, 0, np.zeros((len(X), -(-(first + F) // largest) * largest)))
    rows = [cos_sin(own) for own in turns[:, first : first + F]]
    return np.array(rows).reshape(len(X), 2 * F) / math.sqrt(F)
