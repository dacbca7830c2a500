"""Twins of random Fourier features: projections in turns, cosines and sines, and sums with coefficients."""

import math

import numpy as np


def cos_sin(turns):
    """Of 2 pi turns, each reduced to one period without an error first."""
    reduced = [math.remainder(float(t), 1.0) for t in turns]
    return [math.cos(2 * math.pi * r) for r in reduced], [math.sin(2 * math.pi * r) for r in reduced]


def observed(x):
    return [j for j, value in enumerate(x) if value != 0]


def project_columns(x, columns, W, first, m):
    return [math.fsum(float(x[j]) * float(W[j, first + i]) for j in columns) for i in range(m)]


def _project_some(X, W, first, m):
    return np.array([project_columns(x, observed(x), W, first, m) for x in X])


def _dot(a, b):
    return math.fsum(float(p) * float(q) for p, q in zip(a, b, strict=True))


def _dot_pairs(cosines, sines, a, b):
    return _dot(cosines, a) + _dot(sines, b)


def add_tile(turns, alpha, first, scores):
    cosines, sines = cos_sin(turns)
    own = slice(first, first + len(turns))
    return [score + _dot_pairs(cosines, sines, *alpha[o, :, own]) for o, score in enumerate(scores)]


def add_projected(turns, alpha, first, scores):
    return np.array([add_tile(own, alpha, first, row) for own, row in zip(turns, scores, strict=True)])


def add_scores(X, W, alpha, first, n_features, scores):
    """At once: tiles are for speed."""
    return add_projected(_project_some(X, W, 0, n_features), alpha, first, scores)


def paired_features(X, W, first, F):
    rows = []
    for x in X:
        cosines, sines = cos_sin(project_columns(x, range(len(x)), W, first, F))
        rows.append([value / math.sqrt(F) for value in [*cosines, *sines]])
    return np.array(rows)


def adaptive_columns(X, W, scales, root, n_linear):
    features = paired_features(X * scales, W, 0, W.shape[1])
    return np.concatenate([features, np.ones((len(X), 1)), np.clip(X[:, :n_linear] / root, -1e6, 1e6)], axis=1)


def column_means(g):
    return [math.fsum(column) / len(g) for column in np.transpose(g)]


def mean_outer(phi, g):
    out = np.zeros((g.shape[1], phi.shape[1]))
    for features, gradient in zip(phi, g, strict=True):
        out += np.outer(gradient, features) / len(phi)
    return out


def largest_eigenvalue(A):
    return np.linalg.eigvalsh(A)[-1]
