"""Softmax: scores become probabilities."""

import numpy as np

from streamkernel.compute.jit import Array, jit


@jit
def softmax_into(scores: Array, temperature: float, p: Array) -> None:
    """p = softmax(temperature scores)."""
    highest = scores[0]
    for k in range(1, scores.shape[0]):
        highest = max(highest, scores[k])
    total = 0.0
    for k in range(scores.shape[0]):
        p[k] = np.exp(temperature * (scores[k] - highest))
        total += p[k]
    for k in range(scores.shape[0]):
        p[k] /= total


@jit
def softmax_rows(scores: Array, p: Array) -> None:
    """Every row's softmax; float64 of shape (n, K)."""
    for r in range(scores.shape[0]):
        softmax_into(scores[r], 1.0, p[r])
