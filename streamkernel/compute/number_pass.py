"""A segment of records with numbers for targets through all experts and their mixture."""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.experts import (
    DISCOUNT,
    Heads,
    Linear,
    Mixture,
    count_loss,
    hedge_weights,
    predict_experts,
    update_heads,
)
from streamkernel.compute.jit import Array, jit, jit_long
from streamkernel.compute.memory import MANY, Ring, neighbors_of_number, remember
from streamkernel.compute.moments import MEAN, deviation, near, take_target
from streamkernel.compute.number_targets import (
    AsinhStatistics,
    at_median,
    follow_median,
    forget_asinh,
    from_asinh,
    keep_magnitude,
    keep_residual,
    take_asinh,
)
from streamkernel.compute.recursive import dot, learn_least_squares
from streamkernel.compute.stacking import Stacking, beside, learn_numbers, stack_numbers
from streamkernel.compute.tree_schedule import learn_trees
from streamkernel.compute.trees import Forest, predict_trees

#: No squared error counts as more than this many variances of the target, so that one record does not decide.
WORST = 4.0
#: How fast a level follows the errors it corrects.
LEVEL_RATE = 0.6
#: The columns of a prediction: of the target, the deviation of its error, the variance of the targets and this one.
PREDICTION, DEVIATION, VARIANCE = range(3)


class TargetStatistics(NamedTuple):
    """Running statistics of the targets and of the errors.

    Attributes
    ----------
    moments, linear_moments
        Moments of the targets that the heads, and the linear experts, have learned, float64 of shape (8,). Where the
        latter are replaced, levels, trees and squared errors start over: what they have learned is of another size.
    levels
        The level of the last errors of heads and linear experts mixed, and of that when the trees have corrected it,
        shape (1 + T,): an expert each.
    squared_errors
        The mixture's squared errors and their number, both discounted, float64 of shape (2,).
    residuals
        How many errors of the mixture there have been, and the last of them, as `keep_residual` has them.
    asinh
        An `AsinhStatistics`, as a plain tuple: what the heads have learned of the targets on the scale of asinh.
    median
        What `follow_median` keeps, (4,), or (0,) where the mean is predicted. For a median the experts' losses are
        absolute errors, in deviations of the target, and their mixture is shifted; for a mean they are squared ones.

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
    heads_parts: tuple[Any, ...],
    linear_parts: tuple[Any, ...],
    forest_parts: tuple[Any, ...],
    memory_parts: tuple[Any, ...],
    mixture_parts: tuple[Any, ...],
    stacks_parts: tuple[Any, ...],
    statistics_parts: tuple[Any, ...],
    past: Array,
    out: Array,
) -> None:
    """Predict, then learn, records with numbers for targets.

    Parameters
    ----------
    Phi, X, values
        Columns of the records, float64 of shape (n, D), their inputs scaled, float32 of shape (n, d) at least, and as
        they came, (n, d); NaN where not observed.
    targets
        float64 of shape (n,); NaN is predicted and changes nothing.
    sample_weights
        float64 of shape (n,).
    heads_parts, linear_parts
        `Heads` of two outputs, the target and it on the scale of asinh, and `Linear` experts of one, as plain tuples;
        updated.
    forest_parts
        A `Forest` of T = 1 ensemble of trees, or none, on what heads and linear experts leave over; updated.
    memory_parts
        A `Ring`; updated.
    mixture_parts
        A `Mixture` of H + E + H + T + M + 1 + T experts: heads, linear experts, heads' second outputs, trees,
        neighbors, levels; then the 1 + G + S of the last mixture. Its own losses are squared errors in variances of
        the target, and none counts as more than `WORST` in its block; updated.
    stacks_parts
        `Stacking` of these experts and, last, of the past; updated.
    statistics_parts
        `TargetStatistics`; updated, the moments before the residual is taken.
    past
        What is known of the target by its past: what a machine that sees it predicts, or the last one, float64 of shape
        (n, G), G = 1 or 0. The last mixture is of all experts here mixed, of that, which as one among them would be
        outweighed by their number, and of the stacks.
    out
        Filled, float64 of shape (n, 3): `PREDICTION`, `DEVIATION`, which is NaN before the first target, and
        `VARIANCE`, which is 0 before two targets differ.
    """
    # Named by the caller they would make each call from Python slower.
    heads, linear = Heads(*heads_parts), Linear(*linear_parts)
    forest, memory, mixture = Forest(*forest_parts), Ring(*memory_parts), Mixture(*mixture_parts)
    stacks = Stacking(*stacks_parts)
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
        update_heads(heads, phi, truth, scores, sample_weights[r], errors)
        out[r, VARIANCE] = deviation(linear_moments) ** 2
