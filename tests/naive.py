"""The slow plain twin of every jitted kernel in streamkernel/compute, written for reading: loops, Python numbers.

A twin has the name of its kernel and returns what the kernel fills in.
"""

import math

import numpy as np

WORD = 2**64
HALF_WORD = 2**32
GOLDEN = 0x9E3779B97F4A7C15


# gaussians.py ---------------------------------------------------------------------------------------------------------


def mix64(word):
    """splitmix64's finaliser."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def feature_words(seed, first, n):
    base = mix64((seed + GOLDEN) % WORD)
    return [mix64((base + i * GOLDEN) % WORD) for i in range(first, first + n)]


def hash64(word, key):
    """The 64 mixed bits of a feature and an input: 48 to count, 16 to dither."""
    low, high = (word ^ key) % HALF_WORD, (word ^ key) >> 32
    x = low * 0x9E3779B1 % HALF_WORD
    y = (high ^ x ^ (x >> 15)) * 0x85EBCA77 % HALF_WORD
    x ^= y ^ (y >> 13)
    return (x << 16) | (y >> 16), y % 2**16


def shaped(count, dither):
    """x (a + b x^2) of x = count - 24 + two bytes of dither in (-1, 1): one float32 rounding after each operation."""
    x = np.float32(count - 24 + (dither // 256 + dither % 256 - 255) / 256)
    return x * (np.float32(0.28518261886330426) + np.float32(4.1825692287907671e-05) * (x * x))


def gaussians(words, keys, scale, dtype):
    out = np.empty((len(keys), len(words)), dtype)
    for j, key in enumerate(keys):
        for i, word in enumerate(words):
            counted, dither = hash64(word, key)
            out[j, i] = float(shaped(counted.bit_count(), dither)) * scale
    return out


# features.py ----------------------------------------------------------------------------------------------------------


def _cos_sin(turns):
    """Of 2 pi turns, each reduced to one period without an error first."""
    reduced = [math.remainder(float(t), 1.0) for t in turns]
    return [math.cos(2 * math.pi * r) for r in reduced], [math.sin(2 * math.pi * r) for r in reduced]


def _project(x, W, first, m):
    return [sum(float(x[j]) * float(W[j, first + i]) for j in range(len(x))) for i in range(m)]


def _dot(a, b):
    return math.fsum(float(p) * float(q) for p, q in zip(a, b, strict=True))


def add_scores(X, W, alpha, scores):
    n_blocks, n_outputs, width = alpha.shape
    F = width // 2
    scores = scores.copy()
    for r in range(len(X)):
        for k in range(n_blocks):
            cosines, sines = _cos_sin(_project(X[r], W, k * F, F))
            for o in range(n_outputs):
                scores[r, o] += _dot([*cosines, *sines], alpha[k, o])
    return scores


def paired_features(X, W, first, F):
    rows = []
    for x in X:
        cosines, sines = _cos_sin(_project(x, W, first, F))
        rows.append([value / math.sqrt(F) for value in [*cosines, *sines]])
    return np.array(rows)


def mean_outer(phi, g):
    out = np.zeros((g.shape[1], phi.shape[1]))
    for features, gradient in zip(phi, g, strict=True):
        out += np.outer(gradient, features) / len(phi)
    return out


def largest_eigenvalue(A):
    return np.linalg.eigvalsh(A)[-1]


# moments.py -----------------------------------------------------------------------------------------------------------


def scale_rows(raw, learn, is_number, limit, before=None):
    """Rows scaled by the mean and deviation of all that was observed and learnt up to each, itself included.

    `before` holds what every column had observed earlier. Returns the rows and what every column has observed now.
    """
    observed = [list(values) for values in (before or [[] for _ in is_number])]
    out = np.zeros(raw.shape)
    for r, row in enumerate(raw):
        for j, value in enumerate(row):
            if math.isnan(value):
                continue
            value = min(max(value, -1e150), 1e150)
            if not is_number[j]:
                out[r, j] = value
                continue
            sample = np.array([*observed[j], value], np.float64)
            deviation = sample.std()
            out[r, j] = 0.0 if deviation == 0 else np.clip((value - sample.mean()) / deviation, -limit, limit)
            if learn[r]:
                observed[j].append(value)
    return out, observed


def clip_rows(raw, limit):
    return np.array([[0.0 if math.isnan(v) else min(max(v, -limit), limit) for v in row] for row in raw])
