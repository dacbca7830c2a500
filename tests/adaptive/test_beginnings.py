"""Streams that begin oddly: without inputs, with one of many, with records of absurd weight."""

import pickle

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.compute.memory import LABEL_EXPERTS, NUMBER_EXPERTS

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
