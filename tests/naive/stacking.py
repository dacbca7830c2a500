"""Twins of stacking: each stack is a pair of a whole matrix P and its weights."""

import math

import numpy as np

from tests.naive.recursive import learn_least_squares
from tests.naive.softmax import softmax_into


def beside(predictions, mixed, unit):
    return [min(max((prediction - mixed) / unit, -2), 2) for prediction in predictions]


def stack_numbers(stacks, x, mixed, unit):
    return [mixed + unit * min(max(np.dot(w, x), -2), 2) for w in stacks.W[:, 0]]


def learn_numbers(stacks, x, error, weight):
    error = min(max(error, -2), 2)
    return [learn_stack(stacks, s, x, error - np.dot(w, x), weight) for s, w in enumerate(stacks.W[:, 0])]


def log_ratios(p, mixed, smoothing):
    K = len(mixed)
    *experts, mixture = ([math.log((1 - smoothing) * p_k + smoothing / K) for p_k in one] for one in [*p, mixed])
    return np.array([*(np.subtract(one, mixture) for one in experts), [math.log(max(p_k, 1e-15)) for p_k in mixed]])


def stack_labels(stacks, ratios):
    return [softmax_into(ratios[-1] + np.dot(w, ratios[:-1]), 1) for w in stacks.W[:, 0]]


def learn_labels(stacks, ratios, p, label, weight):
    gradients = [ratios[:-1, label] - np.dot(ratios[:-1], p_s) for p_s in p]
    return [learn_stack(stacks, s, gradient, 1, weight) for s, gradient in enumerate(gradients)]


def learn_stack(stacks, s, x, error, weight):
    """P and W of the stack afterwards."""
    return learn_least_squares(stacks.P[s], stacks.W[s], x, [error], weight, stacks.drifts[s], 1 / stacks.ridge)
