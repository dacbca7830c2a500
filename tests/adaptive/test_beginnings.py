"""Streams that begin oddly: without inputs, with one of many, with records of absurd weight."""

import pickle

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.compute.memory import LABEL_EXPERTS, NUMBER_EXPERTS
from streamkernel.estimators.base import machine_of

BOTH = pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])


@BOTH
def test_a_first_record_without_inputs(kind):
    rng = np.random.default_rng(0)
    model = kind(n_features=8, seed=1)
    model.learn_one({}, 1)
    for i in range(30):
        model.learn_one({"a": float(rng.normal())}, i % 2)
    # Three heads, of numbers on two scales, two linear experts; two of trees, or three of trees and levels; neighbors;
    # two stacks.
    n_experts = 9 + len(LABEL_EXPERTS) if kind is AdaptiveKernelClassifier else 13 + len(NUMBER_EXPERTS)
    assert len(model.expert_weights) == n_experts
    again = pickle.loads(pickle.dumps(model))
    assert again.state_digest() == model.state_digest()
    assert again.predict_one({"a": 0.3}) == model.predict_one({"a": 0.3})


def test_the_linear_experts_say_at_a_new_metric_what_they_said():
    """The first record has one input of ten, so that the metric counts the inputs again."""
    rng = np.random.default_rng(0)
    model = AdaptiveKernelRegressor(n_features=8, metric_schedule=(100,), seed=1)
    row, said = np.array([1.0] + [1.0, -0.5] * 5), []
    i = 0
    while machine_of(model).core.columns.d0 < 10:
        x = {f"i{j}": float(rng.normal()) for j in range(10 if i else 1)}
        i += 1
        model.learn_one(x, 100 + 10 * sum(x.values()))
        experts, root = machine_of(model).experts, np.sqrt(machine_of(model).core.columns.d0)
        said.append(experts.linear_W[:, 0] @ (row / np.append(1.0, np.full(10, root))) if i > 1 else None)
    assert 100 <= i < 110
    assert np.abs(said[-1] - said[-2]).max() < 0.1
