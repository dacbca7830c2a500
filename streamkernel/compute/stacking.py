"""Stacking: the mixture of the experts corrected by how each of them differs from it, with weights learned online.

Hedge gives its weight to the best experts; errors that experts share, or that cancel, need weights of any sign. Each
record is one of recursive least squares: for numbers on the experts' predictions, for classes on their
log-probabilities, where the gradient is the record's column (an online Newton step).
"""

from typing import NamedTuple

import numpy as np

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.recursive import dot, learn_least_squares
from streamkernel.compute.softmax import softmax_into

#: Most deviations of the target that a prediction counts as away from the mixture, or that correct it.
FURTHEST = 2.0
#: The least probability of which a logarithm is taken.
LEAST = 1e-15


class Stacking(NamedTuple):
    """S stacks of N experts, which forget at different rates.

    Attributes
    ----------
    P, W
        Inverse covariances, float64 of shape (S, N, N), lower triangles, and weights, (S, 1, N).
    drifts
        q of each, shape (S,).
    ridge
        rho.

    """

    P: Array
    W: Array
    drifts: Array
    ridge: float


@jit
def beside(predictions: Array, mixed: float, unit: float, out: Array) -> None:
    """How far from the mixture's prediction each expert's is, in deviations of the target, (N,) into (N,)."""
    for j in range(out.shape[0]):
        out[j] = min(max((predictions[j] - mixed) / unit, -FURTHEST), FURTHEST)


@jit
def stack_numbers(stacks: Stacking, x: Array, mixed: float, unit: float, out: Array) -> None:
    """Each stack's prediction, shape (S,), of what `beside` gave."""
    for s in range(out.shape[0]):
        out[s] = mixed + unit * min(max(dot(stacks.W[s, 0], x), -FURTHEST), FURTHEST)


@jit
def learn_numbers(stacks: Stacking, x: Array, error: float, weight: float, room: Array) -> None:
    """Each stack learns the mixture's error, in deviations of the target; `room` is of shape (N + 1,)."""
    error = min(max(error, -FURTHEST), FURTHEST)
    for s in range(stacks.W.shape[0]):
        room[:1] = error - dot(stacks.W[s, 0], x)
        learn_stack(stacks, s, x, weight, room)


@jit
def log_ratios(p: Array, mixed: Array, smoothing: float, out: Array) -> None:
    """Each expert's log-probabilities less the mixture's, smoothed, (N, K); the mixture's own in the last row."""
    N, K = out.shape[0] - 1, out.shape[1]
    for k in range(K):
        out[N, k] = np.log(max(mixed[k], LEAST))
        of_mixture = np.log((1.0 - smoothing) * mixed[k] + smoothing / K)
        for j in range(N):
            out[j, k] = np.log((1.0 - smoothing) * p[j, k] + smoothing / K) - of_mixture


@jit
def stack_labels(stacks: Stacking, ratios: Array, out: Array) -> None:
    """Each stack's probabilities, (S, K), of what `log_ratios` gave."""
    N, K = ratios.shape[0] - 1, ratios.shape[1]
    for s in range(out.shape[0]):
        for k in range(K):
            out[s, k] = ratios[N, k]
            for j in range(N):
                out[s, k] += stacks.W[s, 0, j] * ratios[j, k]
        softmax_into(out[s], 1.0, out[s])


@jit
def learn_labels(stacks: Stacking, ratios: Array, p: Array, label: int, weight: float, x: Array, room: Array) -> None:
    """Each stack learns a label, with what it said of it, (S, K); `x` and `room` are of shapes (N,) and (N + 1,)."""
    for s in range(stacks.W.shape[0]):
        for j in range(x.shape[0]):
            x[j] = ratios[j, label] - dot(p[s], ratios[j])
        room[:1] = 1.0
        learn_stack(stacks, s, x, weight, room)


@jit
def learn_stack(stacks: Stacking, s: int, x: Array, weight: float, room: Array) -> None:
    """One record of least squares, whose error is the first number of `room`."""
    learn_least_squares(stacks.P[s], stacks.W[s], x, room[:1], weight, stacks.drifts[s], 1.0 / stacks.ridge, room[1:])
