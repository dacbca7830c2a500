"""A segment of records with numbers for targets through all experts and their mixture.

What is known of the targets: their scale of asinh, the shift to a median, and the last errors. The scale asinh(y / c),
c the usual magnitude, is linear about 0 and logarithmic far from it. Heads that learn targets on it minimize large
targets' relative errors, so that a few very large ones do not decide.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.experts import (
    DISCOUNT,
    beside,
    count_loss,
    hedge_weights,
    learn_numbers,
    look_ahead,
    named_parts,
    predict_experts,
    stack_numbers,
    update_heads,
)
from streamkernel.compute.jit import Array, jit, jit_long
from streamkernel.compute.memory import MANY, neighbors_of_number, remember
from streamkernel.compute.moments import MEAN, deviation, near, take_target
from streamkernel.compute.recursive import dot, learn_least_squares
from streamkernel.compute.tree_growth import learn_trees
from streamkernel.compute.trees import predict_trees

#: This many targets other than 0 fix the magnitude; from then on it does not change.
MAGNITUDES = 128
#: Smaller magnitudes count as this: quotients of targets by them would overflow.
LEAST_MAGNITUDE = 1e-200
#: The least and the greatest target, first and second of a range.
LOW, HIGH = range(2)


class AsinhStatistics(NamedTuple):
    """What is known of targets on the scale of asinh, since heads began to learn them.

    - moments: Moments of the targets on that scale, float64 of shape (8,).
    - magnitudes: How many of the first targets other than 0 are kept, at most `MAGNITUDES`, then their absolute values,
      sorted, and zeros; float64 of shape (1 + `MAGNITUDES`,).
    - bounds: `LOW` and `HIGH`; both 0 at first.
    """

    moments: Array
    magnitudes: Array
    bounds: Array


@jit
def magnitude_of(magnitudes: Array) -> Any:
    """c: the median of the magnitudes, of an even number the upper one; 1 before there are any."""
    n = np.int64(magnitudes[0])
    return max(magnitudes[1 + n // 2], LEAST_MAGNITUDE) if n else 1.0


@jit
def keep_magnitude(magnitudes: Array, y: float) -> None:
    """Keep one more target's magnitude, if it is not 0 and there is room."""
    n, size = np.int64(magnitudes[0]), abs(y)
    if size == 0 or n == MAGNITUDES:
        return
    place = n + 1
    while place > 1 and magnitudes[place - 1] > size:
        magnitudes[place] = magnitudes[place - 1]
        place -= 1
    magnitudes[place] = size
    magnitudes[0] = n + 1.0


@jit
def from_asinh(asinh: AsinhStatistics, score: float, margin: float) -> Any:
    """The target that a head's score means; no farther than `margin` from all that were learned."""
    c = magnitude_of(asinh.magnitudes)
    # Where sinh overflows, it is infinite, and bounded as well.
    y = c * np.sinh(asinh.moments[MEAN] + deviation(asinh.moments) * score)
    return min(max(y, asinh.bounds[LOW] - margin), asinh.bounds[HIGH] + margin)


@jit
def take_asinh(asinh: AsinhStatistics, y: float) -> Any:
    """Take a target; returns it on the scale of asinh, as the moments that include it standardize it."""
    if asinh.moments[0] == 0:
        asinh.bounds[LOW] = asinh.bounds[HIGH] = y
    asinh.bounds[LOW], asinh.bounds[HIGH] = min(asinh.bounds[LOW], y), max(asinh.bounds[HIGH], y)
    return take_target(asinh.moments, np.arcsinh(y / magnitude_of(asinh.magnitudes)))[0]


@jit
def forget_asinh(asinh: AsinhStatistics) -> None:
    """Reset the statistics."""
    asinh.moments[:] = 0.0
    asinh.magnitudes[:] = 0.0
    asinh.bounds[:] = 0.0


@jit
def take_all_asinh(targets: Array, sample_weights: Array, asinh: AsinhStatistics, out: Array) -> None:
    """Take targets one after the other, (n,), as `take_asinh` gives them into (n,); none of a weight of 0."""
    for r in range(targets.shape[0]):
        out[r] = take_asinh(asinh, targets[r]) if sample_weights[r] > 0 else 0.0


#: The numbers kept: the shift, the mean absolute error, and the discounted losses without the shift and with it.
SHIFT, SPREAD, PLAIN, SHIFTED = range(4)
MEDIAN_SIZE = 4
#: A step of the shift, in mean absolute errors, and how fast these are forgotten.
STEP = 0.01
FORGET = 0.01
#: Discount and learning rate of the losses: whether errors are skewed shows slowly.
MEDIAN_DISCOUNT = 0.998
MEDIAN_ETA = 2.0


@jit
def at_median(median: Array, prediction: float) -> Any:
    """A prediction moved by the shift, the more the better that did."""
    return prediction + median[SHIFT] / (1.0 + np.exp(MEDIAN_ETA * (median[SHIFTED] - median[PLAIN])))


@jit
def follow_median(median: Array, error: float, unit: float, worst: float) -> None:
    """Learn the error of a prediction without the shift; no loss, in units, counts as more than `worst`."""
    shifted = error - median[SHIFT]
    plain, other = min(abs(error) / unit, worst), min(abs(shifted) / unit, worst)
    mean = (plain + other) / 2.0 + 0.05
    median[PLAIN] = MEDIAN_DISCOUNT * median[PLAIN] + 0.4 * plain / mean
    median[SHIFTED] = MEDIAN_DISCOUNT * median[SHIFTED] + 0.4 * other / mean
    median[SPREAD] += FORGET * (abs(error) - median[SPREAD])
    median[SHIFT] += STEP * median[SPREAD] * np.sign(shifted)


#: How many are kept.
RESIDUALS = 500


@jit
def keep_residual(residuals: Array, error: float) -> None:
    """Keep one more, the oldest making room: how many there have been, then a ring of `RESIDUALS`."""
    n = np.int64(residuals[0])
    residuals[1 + n % RESIDUALS] = error
    residuals[0] = n + 1.0


#: No squared error counts as more than this many variances of the target, so that one record does not decide.
WORST = 4.0
#: How fast a level follows the errors it corrects.
LEVEL_RATE = 0.6
#: The columns of a prediction: of the target, the deviation of its error, the variance of the targets and this one.
PREDICTION, DEVIATION, VARIANCE = range(3)


class TargetStatistics(NamedTuple):
    """Running statistics of the targets and of the errors.

    - moments, linear_moments: Moments of the targets that the heads, and the linear experts, have learned, float64 of
      shape (8,). Where the latter are replaced, levels, trees and squared errors start over: what they have learned is
      of another size.
    - levels: The level of the last errors of heads and linear experts mixed, and of that when the trees have corrected
      it, shape (1 + T,): an expert each.
    - squared_errors: The mixture's squared errors and their number, both discounted, float64 of shape (2,).
    - residuals: How many errors of the mixture there have been, and the last of them, as `keep_residual` has them.
    - asinh: An `AsinhStatistics`, as a plain tuple: what the heads have learned of the targets on the scale of asinh.
    - median: What `follow_median` keeps, (4,), or (0,) where the mean is predicted. For a median the experts' losses
      are absolute errors, in deviations of the target, and their mixture is shifted; for a mean they are squared ones.
    """

    moments: Array
    linear_moments: Array
    levels: Array
    squared_errors: Array
    residuals: Array
    asinh: Any
    median: Array


@jit
def capped_error(error: float, variance: float, absolute: bool) -> Any:
    """A squared error in variances of the target, `WORST` at most; or, absolute, its root."""
    squared = min(error**2 / variance, WORST)
    return np.sqrt(squared) if absolute else squared


@jit_long
def pass_numbers(
    Phi: Array,
    X: Array,
    values: Array,
    targets: Array,
    sample_weights: Array,
    experts_parts: tuple[Any, ...],
    statistics_parts: tuple[Any, ...],
    past: Array,
    out: Array,
) -> None:
    """Predict, then learn, records with numbers for targets.

    - Phi, X, values: Columns of the records, float64 of shape (n, D), their inputs scaled, float32 of shape (n, d) at
      least, and as they came, (n, d); NaN where not observed.
    - targets: float64 of shape (n,); NaN is predicted and changes nothing.
    - sample_weights: float64 of shape (n,).
    - experts_parts: As `named_parts` has them; updated. Heads have two outputs, the target and it on the asinh scale,
      linear experts one. T = 1 ensemble of trees, or none, learns what both leave over. The mixture is of H + E + H + T
      + M + 1 + T experts: heads, linear experts, heads' second outputs, trees, neighbors, levels; then the 1 + G + S of
      the last mixture. Its own losses are squared errors in variances of the target, and none counts as more than
      `WORST` in its block. The stacks are of these experts and, last, of the past.
    - statistics_parts: `TargetStatistics`; updated, the moments before the residual is taken.
    - past: What is known of the target by its past: what a machine that sees it predicts, or the last one, float64 of
      shape (n, G), G = 1 or 0. The last mixture is of all experts here mixed, of that, which as one among them would be
      outweighed by their number, and of the stacks.
    - out: Filled, float64 of shape (n, 3): `PREDICTION`, `DEVIATION`, which is NaN before the first target, and
      `VARIANCE`, which is 0 before two targets differ.
    """
    heads, linear, forest, memory, mixture, stacks = named_parts(experts_parts)
    H, _, D = heads.W.shape
    E, _, L = linear.W.shape
    losses, prior, eta = mixture.losses, mixture.prior, mixture.eta
    moments, linear_moments, levels, squared_errors, residuals, asinh_parts, median = statistics_parts
    asinh = AsinhStatistics(*asinh_parts)
    absolute = median.shape[0] > 0
    T = forest.targets.shape[0]
    n_smooth = H + E + H
    G = past.shape[1]
    S, _, N = stacks.W.shape
    n_experts = N - G
    first_level = n_experts - 1 - T
    n_others = H + E + 2 * T + 1
    scores = np.empty((H + E, 2))
    predictions, capped, weights = np.empty(N), np.empty(n_experts), np.empty(n_experts)
    truth, error = np.empty(2), np.empty(1)
    last, shares = np.empty(1 + G + S), np.empty(1 + G + S)
    x, room = np.empty(N), np.empty(N + 1)
    leaves, leaf_targets = np.empty((T, 1)), np.empty((T, 1))
    errors = np.empty(2)
    neighbors = np.empty(MANY)
    v_linear = np.empty(L)
    ahead = look_ahead(heads, Phi, ~np.isnan(targets))
    for r in range(Phi.shape[0]):
        phi = Phi[r]
        y = targets[r]
        predict_experts(heads.W, linear.W, phi, scores)
        for j in range(H):
            predictions[j] = moments[MEAN] + deviation(moments) * scores[j, 0]
            predictions[H + E + j] = from_asinh(asinh, scores[j, 1], deviation(moments))
        for j in range(H, H + E):
            predictions[j] = linear_moments[MEAN] + deviation(linear_moments) * scores[j, 0]
        hedge_weights(losses[:n_smooth], prior[:n_smooth], eta, weights[:n_smooth])
        smooth = dot(weights[:n_smooth], predictions[:n_smooth])
        if T:
            predict_trees(forest, values[r], leaves)
            predictions[n_smooth] = smooth + leaves[0, 0]
            predictions[first_level + 1] = predictions[n_smooth] + levels[1]
        if memory.span[0]:
            neighbors_of_number(
                memory, X[r], smooth, linear_moments, neighbors, predictions[n_smooth + T : first_level]
            )
        predictions[first_level] = smooth + levels[0]
        variance = deviation(linear_moments) ** 2
        if variance <= 0:
            variance = 1.0
        unit = np.sqrt(variance)
        hedge_weights(losses[:n_experts], prior[:n_experts], eta, weights)
        last[0] = dot(weights, predictions[:n_experts])
        if G:
            predictions[n_experts] = last[1] = near(linear_moments, past[r, 0])
        beside(predictions, last[0], unit, x)
        stack_numbers(stacks, x, last[0], unit, last[1 + G :])
        hedge_weights(losses[n_experts:], prior[n_experts:], eta, shares)
        out[r, PREDICTION] = dot(shares, last)
        unshifted = out[r, PREDICTION]
        if absolute:
            out[r, PREDICTION] = at_median(median, unshifted)
        if squared_errors[1] > 0:
            out[r, DEVIATION] = np.sqrt(squared_errors[0] / squared_errors[1])
        else:  # no error is known since all was new
            out[r, DEVIATION] = deviation(linear_moments) if linear_moments[0] > 0 else np.nan
        out[r, VARIANCE] = deviation(linear_moments) ** 2
        if np.isnan(y):
            continue
        mean = 0.0
        for j in range(n_experts):
            capped[j] = capped_error(y - predictions[j], variance, absolute)
            # Neighbors, and heads on a scale that does not suit the target, must not make the others look alike.
            if j < H + E or n_smooth <= j < n_smooth + T or j >= first_level:
                mean += capped[j] / n_others
        for j in range(n_experts):
            losses[j] = DISCOUNT * losses[j] + 0.4 * capped[j] / (mean + 0.05)
        nearer = near(linear_moments, y)
        if linear_moments[0] > 0:
            learn_numbers(stacks, x, (nearer - last[0]) / unit, sample_weights[r], room)
        mean = 0.0
        for g in range(last.shape[0]):
            last[g] = capped_error(y - last[g], variance, absolute)
            mean += last[g] / last.shape[0]
        for g in range(last.shape[0]):
            losses[n_experts + g] = DISCOUNT * losses[n_experts + g] + 0.4 * last[g] / (mean + 0.05)
        count_loss(mixture.block, capped_error(y - out[r, PREDICTION], variance, False))
        squared_errors[0] = DISCOUNT * squared_errors[0] + (nearer - out[r, PREDICTION]) ** 2
        squared_errors[1] = DISCOUNT * squared_errors[1] + 1.0
        if absolute and linear_moments[0] > 0:
            follow_median(median, nearer - unshifted, unit, np.sqrt(WORST))
        keep_residual(residuals, nearer - out[r, PREDICTION])
        if linear_moments[0] > 0:  # before the first target there is nothing to correct
            rate = 1.0 - (1.0 - LEVEL_RATE) ** sample_weights[r]
            levels[0] += rate * (nearer - smooth - levels[0])
            if T:
                levels[1] += rate * (nearer - predictions[n_smooth] - levels[1])
                leaf_targets[0, 0] = nearer - smooth
                learn_trees(forest, values[r], leaf_targets, sample_weights[r])
        remember(memory, X[r], y, sample_weights[r], nearer - smooth if linear_moments[0] > 0 else 0.0)
        target, is_new = take_target(linear_moments, y)
        if is_new:
            levels[:] = 0.0
            squared_errors[:] = 0.0
            residuals[:] = 0.0
            median[:] = 0.0
            forest.counts[:] = 0
            memory.residuals[:] = 0.0
        for e in range(E):
            error[0] = target - scores[H + e, 0]
            learn_least_squares(
                linear.P[e],
                linear.W[e],
                phi[D - L :],
                error,
                sample_weights[r],
                linear.rates[e],
                1.0 / linear.ridge,
                v_linear,
            )
        truth[0], is_new = take_target(moments, nearer)
        if is_new:
            forget_asinh(asinh)
        keep_magnitude(asinh.magnitudes, nearer)
        truth[1] = take_asinh(asinh, nearer)
        update_heads(heads, ahead, truth, scores, sample_weights[r], errors)
        out[r, VARIANCE] = deviation(linear_moments) ** 2
