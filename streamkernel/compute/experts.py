"""A stretch of records through all experts and their mixture, one record after the other.

Every expert speaks before it learns. The heads live on all columns, the linear experts on the last ones, which hold the
constant and the inputs themselves.
"""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit
from streamkernel.compute.recursive import dot, learn_least_squares, learn_newton

Array = np.ndarray[Any, np.dtype[Any]]

#: Losses of the mixture are discounted by this a record.
DISCOUNT = 0.99
#: The rate of the temperatures' gradient steps, and where the gradient is clipped.
TEMPERATURE_STEP = 0.05
TEMPERATURE_CLIP = 2.0
HIGHEST_LOG_TEMPERATURE = 4.0
#: How much of every expert's distribution is uniform when its loss is taken.
SMOOTHING = 0.001


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
def hedge_weights(losses: Array, eta: float, weights: Array) -> None:
    """Weights proportional to exp(-eta loss), from discounted sums of losses."""
    lowest = losses.min()
    total = 0.0
    for j in range(losses.shape[0]):
        weights[j] = np.exp(-eta * (losses[j] - lowest))
        total += weights[j]
    for j in range(losses.shape[0]):
        weights[j] /= total


@jit
def step_temperature(log_temperature: float, scores: Array, p: Array, label: int) -> Any:
    """One clipped gradient step of the log-loss of softmax(tau scores) in log tau, kept within [0, 4]."""
    expected = 0.0
    for k in range(p.shape[0]):
        expected += p[k] * scores[k]
    slope = np.exp(log_temperature) * (expected - scores[label])
    slope = min(max(slope, -TEMPERATURE_CLIP), TEMPERATURE_CLIP)
    return min(max(log_temperature - TEMPERATURE_STEP * slope, 0.0), HIGHEST_LOG_TEMPERATURE)


@jit
def pass_labels(
    Phi: Array,
    labels: Array,
    sample_weights: Array,
    heads_P: Array,
    heads_W: Array,
    drifts: Array,
    ridge: float,
    linear_P: Array,
    linear_W: Array,
    forgetting: Array,
    log_temperatures: Array,
    losses: Array,
    eta: float,
    only_heads: bool,
    out: Array,
) -> None:
    """Predict, then learn, a stretch of classified records.

    Parameters
    ----------
    Phi
        Columns of the records, float64 of shape (n, D).
    labels
        Classes, int64 of shape (n,); -1 is predicted and changes nothing.
    sample_weights
        float64 of shape (n,).
    heads_P, heads_W
        The heads' matrices, (H, D, D) and (H, K, D); updated.
    drifts
        q of each head, shape (H,).
    ridge
        rho.
    linear_P, linear_W
        The linear experts' matrices, (E, L, L) and (E, K, L), on the last L columns; updated.
    forgetting
        lambda of each linear expert, shape (E,).
    log_temperatures
        log tau of each head, shape (H,); updated.
    losses
        Discounted losses of all experts, heads first, shape (H + E,); updated.
    eta
        The mixture's rate.
    only_heads
        Whether the heads alone learn: the records come again.
    out
        Filled: the mixture's probabilities, float64 of shape (n, K).
    """
    n, D = Phi.shape
    H, K, _ = heads_W.shape
    E, _, L = linear_W.shape
    scores = np.empty((H + E, K))
    p = np.empty((H + E, K))
    weights = np.empty(H + E)
    errors = np.empty(K)
    v = np.empty(D)
    v_linear = np.empty(L)
    for r in range(n):
        phi = Phi[r]
        linear = phi[D - L :]
        label = labels[r]
        for j in range(H):
            for k in range(K):
                scores[j, k] = dot(heads_W[j, k], phi)
            softmax_into(scores[j], np.exp(log_temperatures[j]), p[j])
        for e in range(E):
            for k in range(K):
                scores[H + e, k] = dot(linear_W[e, k], linear)
            softmax_into(scores[H + e], 1.0, p[H + e])
        hedge_weights(losses, eta, weights)
        for k in range(K):
            total = 0.0
            for j in range(H + E):
                total += weights[j] * p[j, k]
            out[r, k] = total
        if label < 0:
            continue
        for j in range(H):
            for k in range(K):
                errors[k] = (1.0 if k == label else 0.0) - 1.0 / K - scores[j, k]
            learn_least_squares(heads_P[j], heads_W[j], phi, errors, sample_weights[r], drifts[j], 1.0 / ridge, v)
        if only_heads:
            continue
        for j in range(H + E):
            losses[j] = DISCOUNT * losses[j] - np.log((1.0 - SMOOTHING) * p[j, label] + SMOOTHING / K)
        for j in range(H):
            log_temperatures[j] = step_temperature(log_temperatures[j], scores[j], p[j], label)
        for e in range(E):
            learn_newton(
                linear_P[e], linear_W[e], linear, p[H + e], label, sample_weights[r], forgetting[e], ridge, v_linear
            )


@jit
def pass_numbers(
    Phi: Array,
    targets: Array,
    sample_weights: Array,
    heads_P: Array,
    heads_W: Array,
    drifts: Array,
    ridge: float,
    linear_P: Array,
    linear_W: Array,
    linear_drifts: Array,
    moments: Array,
    linear_moments: Array,
    losses: Array,
    squared_errors: Array,
    eta: float,
    only_heads: bool,
    out: Array,
) -> None:
    """Predict, then learn, a stretch of records with numbers for targets.

    As `pass_labels`; what differs:

    Parameters
    ----------
    targets
        float64 of shape (n,); NaN is predicted and changes nothing.
    linear_drifts
        q of each linear expert, shape (E,).
    moments, linear_moments
        Count, mean and sum of squared deviations of the targets that the heads, and the linear experts, have learnt;
        float64 of shape (3,), updated before the residual is taken.
    squared_errors
        The mixture's squared errors and their number, both discounted, float64 of shape (2,); updated.
    out
        Filled, float64 of shape (n, 3): the mixture's prediction, the deviation of its errors and the variance of the
        targets so far (1 before two differ).
    """
    n, D = Phi.shape
    H = heads_W.shape[0]
    E, _, L = linear_W.shape
    scores = np.empty(H + E)
    predictions = np.empty(H + E)
    weights = np.empty(H + E)
    squared = np.empty(H + E)
    errors = np.empty(1)
    v = np.empty(D)
    v_linear = np.empty(L)
    for r in range(n):
        phi = Phi[r]
        linear = phi[D - L :]
        y = targets[r]
        for j in range(H):
            scores[j] = dot(heads_W[j, 0], phi)
            predictions[j] = moments[1] + deviation(moments) * scores[j]
        for e in range(E):
            scores[H + e] = dot(linear_W[e, 0], linear)
            predictions[H + e] = linear_moments[1] + deviation(linear_moments) * scores[H + e]
        hedge_weights(losses, eta, weights)
        out[r, 0] = dot(weights, predictions)
        out[r, 1] = np.sqrt(squared_errors[0] / squared_errors[1]) if squared_errors[1] > 0 else 0.0
        variance = deviation(linear_moments) ** 2
        if variance <= 0:
            variance = 1.0
        out[r, 2] = variance
        if np.isnan(y):
            continue
        if not only_heads:
            for j in range(H + E):
                squared[j] = min((y - predictions[j]) ** 2 / variance, 4.0)
            squared_errors[0] = DISCOUNT * squared_errors[0] + (y - out[r, 0]) ** 2
            squared_errors[1] = DISCOUNT * squared_errors[1] + 1.0
            scale = 0.2 / (np.median(squared) + 0.05)
            for j in range(H + E):
                losses[j] = DISCOUNT * losses[j] + scale * squared[j]
            take_target(linear_moments, y)
            spread = deviation(linear_moments)
            for e in range(E):
                errors[0] = (y - linear_moments[1]) / (spread if spread > 0 else 1.0) - scores[H + e]
                learn_least_squares(
                    linear_P[e], linear_W[e], linear, errors, sample_weights[r], linear_drifts[e], 1.0 / ridge, v_linear
                )
        take_target(moments, y)
        spread = deviation(moments)
        for j in range(H):
            errors[0] = (y - moments[1]) / (spread if spread > 0 else 1.0) - scores[j]
            learn_least_squares(heads_P[j], heads_W[j], phi, errors, sample_weights[r], drifts[j], 1.0 / ridge, v)


@jit
def deviation(moments: Array) -> Any:
    """The deviation that count, mean and sum of squared deviations tell."""
    return np.sqrt(moments[2] / moments[0]) if moments[0] > 0 else 0.0


@jit
def take_target(moments: Array, y: float) -> None:
    """Welford's update."""
    moments[0] += 1
    delta = y - moments[1]
    moments[1] += delta / moments[0]
    moments[2] += delta * (y - moments[1])
