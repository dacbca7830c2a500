"""Strings: each value is an indicator of its own, and it is what the model learns from."""

import numpy as np
import pandas as pd
import pytest
from river import evaluate, linear_model, metrics, preprocessing

from streamkernel import AdaptiveKernelClassifier, KernelClassifier, KernelRegressor, losses
from streamkernel.growth import CDSG, DSG, UDSG

COLORS = ["red", "green", "blue", "white", "black", "grey"]
N = 800


def _colors(n=N, noise=3, seed=0):
    """Only the color matters; numbers without information stand beside it."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        color = COLORS[rng.integers(len(COLORS))]
        x = {f"noise{j}": float(v) for j, v in enumerate(rng.normal(size=noise))}
        yield {**x, "color": color}, color in ("red", "white", "grey")


def _pairs(n=1500, seed=0):
    """Only whether two strings agree matters: no value of either tells anything by itself."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        a, b = rng.integers(0, 2, 2)
        yield {"left": "xy"[a], "right": "xy"[b], "noise": float(rng.normal())}, bool(a == b)


def _accuracy(stream, model):
    xs, ys = zip(*stream, strict=True)
    return np.mean([said == y for said, y in zip(model.advance(xs, ys).predictions, ys, strict=True)])


BOTH = pytest.mark.parametrize("classifier", [KernelClassifier, AdaptiveKernelClassifier])


@pytest.mark.parametrize(
    ("growth", "loss"), [(DSG(), None), (UDSG(), losses.Log()), (CDSG(), None)], ids=["DSG", "UDSG-log", "CDSG"]
)
def test_a_category_alone_is_learned(growth, loss):
    _assert_a_category_alone_is_learned(KernelClassifier(growth=growth, loss=loss, seed=1))


def _assert_a_category_alone_is_learned(model):
    without = [({name: v for name, v in x.items() if name != "color"}, y) for x, y in _colors()]
    assert _accuracy(without, model.clone()) < 0.6
    assert _accuracy(_colors(), model) > 0.9


@BOTH
def test_an_interaction_of_two_categories_is_learned_where_a_linear_model_fails(classifier):
    one_hot = preprocessing.OneHotEncoder() | linear_model.LogisticRegression()
    text_only = [({name: v for name, v in x.items() if name != "noise"}, y) for x, y in _pairs()]
    assert evaluate.progressive_val_score(text_only, one_hot, metrics.Accuracy()).get() < 0.6
    assert _accuracy(_pairs(), classifier(seed=1)) > 0.85


def test_a_number_that_turns_into_text_is_told_once(caplog):
    model = KernelRegressor(seed=1)
    model.learn_one({"price": 17.5, "color": "red"}, 1.0)
    model.learn_one({"price": "17,50", "color": "blue"}, 1.0)
    model.learn_one({"price": "18,50"}, 1.0)
    model.learn_many(pd.DataFrame({"price": ["19,50"]}), pd.Series([1.0]))
    (told,) = caplog.messages
    assert told == (
        "input 'price' was a number and is now the text '17,50', which counts as a category: use numbers, and "
        "leave missing values out"
    )
