"""Experts with a memory, and records handed to them as the machine does it."""

import numpy as np

from streamkernel.adaptive.memory import Memory

#: Records that are asked for neighbors, and those a metric is learned from: both rings go round in a short stream.
MEMORY, BUFFER = 30, 20


def make_experts(kind, ridge, drift_rates, n_trees, window, memory=MEMORY):
    """Experts of classes or numbers, fresh."""
    return kind(ridge, drift_rates, n_trees, window, Memory(memory, BUFFER))


def without_stacks(model):
    """A model's weights as if there were no stacks, which are made of all experts."""
    weights = {name: weight for name, weight in model.expert_weights.items() if "stack" not in name}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def scaled(values):
    """Inputs as if they had come with mean 0 and deviation 1; not observed is 0."""
    return np.nan_to_num(values).astype(np.float32)


def learn_columns(experts, Phi, X, values, truths, weights):
    """Let experts predict, then learn, records whose columns are known; their predictions."""
    Phi, truths = np.ascontiguousarray(Phi), np.ascontiguousarray(truths)  # as an estimator has them
    arguments = experts.bind(Phi, X, values, truths, weights, np.zeros((len(values), 0), truths.dtype))
    experts.run(*arguments)
    return arguments[-1]


def learn(experts, Phi, values, truths, weights):
    """Let experts predict, then learn, records with these inputs; their predictions."""
    return learn_columns(experts, Phi, scaled(values), values, truths, weights)
