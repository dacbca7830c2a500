"""Experts with a memory, and records handed to them as the machine does it."""

import numpy as np

from streamkernel.adaptive.memory import Memory

#: Records that are asked for neighbours, and those a metric is learnt from: both rings go round in a short stream.
MEMORY, BUFFER = 30, 20


def make_experts(kind, ridge, drift_rates, n_trees, window, memory=MEMORY):
    """Experts of classes or numbers, fresh."""
    return kind(ridge, drift_rates, n_trees, window, Memory(memory, BUFFER))


def scaled(values):
    """Inputs as if they had come with mean 0 and deviation 1; not observed is 0."""
    return np.nan_to_num(values).astype(np.float32)


def learn(experts, Phi, values, truths, weights):
    """Let experts predict, then learn; their predictions."""
    return experts.learn(Phi, scaled(values), values, truths, weights)
