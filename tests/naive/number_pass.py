"""Twins of the pass of records with numbers as targets through all experts."""

import math

import numpy as np

from tests.naive.arrival import arrive
from tests.naive.experts import count_loss, hedge_weights, predict_experts, settled_heads, update_heads
from tests.naive.memory import neighbors_of_number, remember
from tests.naive.moments import TARGETS, Moments, near, take_target
from tests.naive.number_targets import (
    Asinh,
    at_median,
    follow_median,
    forget_asinh,
    from_asinh,
    keep_magnitude,
    keep_residual,
    ring,
    take_asinh,
)
from tests.naive.recursive import learn_least_squares
from tests.naive.stacking import beside, learn_numbers, stack_numbers


def capped_error(error, variance, absolute):
    """Of one or of many."""
    squared = np.minimum(error**2 / variance, 4)
    return np.sqrt(squared) if absolute else squared


def pass_numbers(
    Phi, X, values, targets, sample_weights, heads, linear, ensembles, memory, mixture, stacks, statistics, past
):
    """`ensembles` is empty, or of what is left over; these and `memory` learn in place."""
    heads_P, heads_W, drifts, ridge = settled_heads(heads)
    linear_P, linear_W, linear_drifts, _ = linear
    losses, prior, block, eta = mixture
    moments, linear_moments, levels, squared_errors, _, asinh, median = statistics
    absolute = len(median) > 0
    assert not np.any(moments)
    assert not np.any(linear_moments)
    assert not any(map(np.any, asinh))
    asinh, residuals = Asinh(), []
    moments, linear_moments = Moments(TARGETS), Moments(TARGETS)
    linear_P, linear_W, levels, out = list(linear_P), list(linear_W), np.array(levels), []
    H, E = len(heads_W), len(linear_W)
    for phi, scaled, x, y, weight, other in zip(Phi, X, values, targets, sample_weights, past, strict=True):
        linear_phi = phi[len(phi) - linear_W[0].shape[1] :] if E else None
        scores = predict_experts(heads_W, linear_W, phi)
        predictions = [moments.mean + moments.deviation * score[0] for score in scores[:H]]
        predictions += [linear_moments.mean + linear_moments.deviation * score[0] for score in scores[H:]]
        predictions += [from_asinh(asinh, score[1], moments.deviation) for score in scores[:H]]
        smooth = np.dot(hedge_weights(losses[: 2 * H + E], prior[: 2 * H + E], eta), predictions)
        corrected = np.array([smooth] + [smooth + ensemble.predict_experts(x)[0] for ensemble in ensembles])
        neighbors = neighbors_of_number(memory, scaled, smooth, linear_moments) if memory.span else []
        predictions += [*corrected[1:], *neighbors, *(corrected + levels)]
        n = len(predictions)
        mixed = np.dot(hedge_weights(losses[:n], prior[:n], eta), predictions)
        variance = linear_moments.deviation**2 or 1
        other = [near(linear_moments, one) for one in other]
        x_stack = beside([*predictions, *other], mixed, math.sqrt(variance))
        last_ones = np.array([mixed, *other, *stack_numbers(stacks, x_stack, mixed, math.sqrt(variance))])
        mixed = np.dot(hedge_weights(losses[n:], prior[n:], eta), last_ones)
        unshifted, mixed = mixed, at_median(median, mixed) if absolute else mixed
        total, number = squared_errors
        unknown = linear_moments.deviation if len(linear_moments) else math.nan
        out.append([mixed, math.sqrt(total / number) if number else unknown, linear_moments.deviation**2])
        if math.isnan(y):
            continue
        block = count_loss(block, capped_error(y - mixed, variance, False))
        nearer = near(linear_moments, y)
        squared_errors = 0.99 * np.array(squared_errors) + [(nearer - mixed) ** 2, 1]
        if absolute and len(linear_moments):
            median = follow_median(median, nearer - unshifted, math.sqrt(variance), 2)
        keep_residual(residuals, nearer - mixed)
        capped = capped_error(y - np.array(predictions), variance, absolute)
        first_of_trees, last = 2 * H + E, 2 * H + E + len(ensembles)
        others = np.delete(capped, [*range(H + E, first_of_trees), *range(last, last + len(neighbors))])
        of_last = capped_error(y - last_ones, variance, absolute)
        new = capped / (np.mean(others) + 0.05), of_last / (np.mean(of_last) + 0.05)
        losses = 0.99 * np.array(losses) + 0.4 * np.concatenate(new)
        if len(linear_moments):
            error = (nearer - last_ones[0]) / math.sqrt(variance)
            P, W = zip(*learn_numbers(stacks, x_stack, error, weight), strict=True)
            stacks = stacks._replace(P=np.array(P), W=np.array(W))
            levels = 0.4**weight * levels + (1 - 0.4**weight) * (nearer - corrected)
            for ensemble in ensembles:
                ensemble.learn(x, np.array([nearer - smooth]), weight)
        remember(memory, scaled, y, weight, nearer - smooth if len(linear_moments) else 0)
        standardized, is_new = take_target(linear_moments, y)
        out[-1][2] = linear_moments.deviation**2
        if is_new:
            memory.forget_residuals()
            levels, squared_errors, residuals = np.zeros_like(levels), np.zeros(2), []
            median = np.zeros(len(median))
            for ensemble in ensembles:
                ensemble.forget()
        for e in range(E):
            linear_P[e], linear_W[e] = learn_least_squares(
                linear_P[e],
                linear_W[e],
                linear_phi,
                standardized - scores[H + e][0],
                weight,
                linear_drifts[e],
                1 / ridge,
            )
        standardized, is_new = take_target(moments, nearer)
        if is_new:
            forget_asinh(asinh)
        keep_magnitude(asinh, nearer)
        truth = np.array([standardized, take_asinh(asinh, nearer)])
        heads = heads_P, heads_W, drifts, ridge
        heads_P, heads_W = update_heads(heads, phi, truth, scores, weight)
    return (
        heads_P,
        heads_W,
        linear_P,
        linear_W,
        stacks.P,
        stacks.W,
        levels,
        moments.numbers,
        linear_moments.numbers,
        losses,
        squared_errors,
        block,
        ring(residuals),
        *asinh.numbers,
        median,
        out,
    )


def advance_numbers(values, extras, targets, sample_weights, scaling, feature_map, *experts):
    """The parts of the kernel one after the other, each for all records."""
    targets = np.array(targets)
    X, Phi, observed = arrive(values, extras, ~np.isnan(targets), scaling, feature_map)
    to_learn = np.where(np.array(sample_weights) > 0, targets, math.nan)
    return observed, pass_numbers(Phi, X, values, to_learn, sample_weights, *experts)
