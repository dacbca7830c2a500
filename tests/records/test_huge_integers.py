"""Integers past the largest float, and such as Python does not write as digits, wherever a caller may give one."""

import copy
import pickle

import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor, losses

HUGE = 10**5000
CLASSIFIERS = [
    AdaptiveKernelClassifier(seed=1),
    KernelClassifier(seed=1, max_features=64),
    KernelClassifier(seed=1, max_features=64, loss=losses.Log()),
]
REGRESSORS = [AdaptiveKernelRegressor(seed=1), KernelRegressor(seed=1, max_features=64)]


def _name(model):
    return f"{type(model).__name__}{model.loss.__class__.__name__ if hasattr(model, 'loss') else ''}"


def _learned(model):
    model = model.clone()
    model.advance([{"a": 1.0}, {"a": 2.0}], [0, 1])
    return model


@pytest.mark.parametrize("model", CLASSIFIERS, ids=_name)
@pytest.mark.parametrize("label", [HUGE, -HUGE, (1, HUGE)], ids=["huge", "negative", "in a tuple"])
@pytest.mark.parametrize("known", [True, False])
def test_a_label_that_no_state_can_hold_is_refused(model, label, known):
    model = _learned(model) if known else model.clone()
    before = model.state_digest()
    with pytest.raises(ValueError, match=r"(an integer of 16610 bits|a tuple).* (4300 digits|third class)"):
        model.learn_one({"a": 1.0}, label)
    assert pickle.loads(pickle.dumps(model)).state_digest() == before


@pytest.mark.parametrize("model", CLASSIFIERS, ids=_name)
def test_a_label_past_the_largest_float_is_a_label(model):
    model = model.clone()
    model.advance([{"a": 1.0}, {"a": 2.0}], [10**4299, -(10**4299)])
    assert model.predict_one({"a": 1.0}) in (10**4299, -(10**4299))
    assert copy.deepcopy(model).state_digest() == model.state_digest()


@pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS, ids=_name)
def test_names_and_inputs_and_weights_are_refused_in_a_sentence(model):
    model = _learned(model)
    before = model.state_digest()
    for x, w, sentence in [
        ({HUGE: 1.0}, 1.0, "is an integer of 16610 bits, which is too long: at most 4300 digits"),
        ({("a", HUGE): 1.0}, 1.0, "is an integer of 16610 bits, which is too long: at most 4300 digits"),
        ({"a": HUGE}, 1.0, "input 'a' is infinite"),
        ({HUGE: [1]}, 1.0, "an integer of 16610 bits"),
        ({"a": 1.0}, 10**400, "a weight is negative or not finite"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            model.learn_one(x, 1, w)
    assert model.state_digest() == before
