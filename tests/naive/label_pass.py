"""Twins of the pass of labeled records through all experts."""

import math

import numpy as np

from tests.naive.arrival import arrive
from tests.naive.experts import (
    count_loss,
    hedge_weights,
    predict_experts,
    settled_heads,
    step_temperature,
    update_heads,
)
from tests.naive.memory import neighbors_of_label, remember
from tests.naive.recursive import learn_newton
from tests.naive.softmax import softmax_into
from tests.naive.stacking import learn_labels, log_ratios, stack_labels
from tests.naive.transition import learn_transition, predict_transition


def mix(weights, p, n):
    return sum(weights[j] * np.array(p[j]) for j in range(n))


def shift(p, by, least):
    moved = [max(a + b, least) for a, b in zip(p, by, strict=True)]
    return np.array(moved) / sum(moved)


def pass_labels(
    Phi, X, values, labels, sample_weights, heads, linear, ensembles, memory, mixture, stacks, scores_parts, past
):
    """`ensembles` is empty, or of classes and what is left over; these, `memory` and transitions learn in place."""
    log_temperatures, transitions = scores_parts
    heads_P, heads_W, drifts, ridge = settled_heads(heads)
    linear_P, linear_W, forgetting, _ = linear
    losses, prior, block, eta = mixture
    linear_P, linear_W, temperatures, out = list(linear_P), list(linear_W), log_temperatures, []
    H, E, K = len(heads_W), len(linear_W), len(heads_W[0])
    for phi, scaled, x, label, weight, before in zip(Phi, X, values, labels, sample_weights, past, strict=True):
        linear_phi = phi[len(phi) - linear_W[0].shape[1] :] if E else None
        scores = np.array(predict_experts(heads_W, linear_W, phi))
        p = [softmax_into(score, math.exp(t)) for score, t in zip(scores[:H], temperatures, strict=True)]
        p += [softmax_into(score, 1) for score in scores[H:]]
        smooth = mix(hedge_weights(losses[: H + E], prior[: H + E], eta), p, H + E)
        if ensembles:
            classes, left_over = (ensemble.predict_experts(x) for ensemble in ensembles)
            p.append(shift(np.maximum(classes, 0), np.full(K, 0.02 / K), 0))
            p.append(shift(smooth, left_over, 0.002 / K))
        p += neighbors_of_label(memory, scaled, K) if memory.span else []
        p += [predict_transition(transitions, one, K) for one in before]
        n = len(p)
        mixed = mix(hedge_weights(losses[:n], prior[:n], eta), p, n)
        ratios = log_ratios(p, mixed, 0.001)
        last = [mixed, *stack_labels(stacks, ratios)]
        out.append(mix(hedge_weights(losses[n:], prior[n:], eta), last, len(last)))
        if label < 0:
            continue
        block = count_loss(block, min(-math.log(out[-1][label]), 10))
        truth = np.eye(K)[label]
        heads = heads_P, heads_W, drifts, ridge
        heads_P, heads_W = update_heads(heads, phi, truth - 1 / K, scores, weight)
        losses = 0.99 * np.array(losses) - np.log(
            [0.999 * distribution[label] + 0.001 / K for distribution in [*p, *last]]
        )
        P, W = zip(*learn_labels(stacks, ratios, last[1:], label, weight), strict=True)
        stacks = stacks._replace(P=np.array(P), W=np.array(W))
        temperatures = [step_temperature(temperatures[j], scores[j], p[j], label) for j in range(H)]
        for e in range(E):
            linear_P[e], linear_W[e] = learn_newton(
                linear_P[e], linear_W[e], linear_phi, p[H + e], label, weight, forgetting[e], ridge
            )
        remember(memory, scaled, label, weight, 0)
        for one in before:
            learn_transition(transitions, one, label, weight)
        for ensemble, target in zip(ensembles, (truth, truth - smooth), strict=False):
            ensemble.learn(x, target, weight)
    matrices = heads_P, heads_W, linear_P, linear_W, stacks.P, stacks.W
    return *matrices, temperatures, losses, block, transitions.counts, transitions.unit, out


def advance_labels(values, extras, labels, sample_weights, scaling, feature_map, *experts):
    """The parts of the kernel one after the other, each for all records."""
    labels = np.array(labels)
    X, Phi, observed = arrive(values, extras, labels >= 0, scaling, feature_map)
    to_learn = np.where(np.array(sample_weights) > 0, labels, -1)
    return observed, pass_labels(Phi, X, values, to_learn, sample_weights, *experts)
