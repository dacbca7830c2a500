"""Strings: each value is an indicator of its own, and it is what the model learns from."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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


VALUES = st.sampled_from([1.5, -0.0, 2, True, None, math.nan, "a", "b", np.str_("a"), *map(str, range(9))])


@settings(max_examples=20)
@pytest.mark.filterwarnings("ignore:inputs past max_inputs")
@given(st.data(), st.integers(1, 60), st.sampled_from([3, 8, 1000]))
def test_dicts_with_texts_are_learned_as_one_by_one(data, n, max_inputs):
    """By columns where all have the same inputs; a text may be new, missing, or now and then a number."""
    rows = st.fixed_dictionaries({"n": st.floats(-3, 3), "t": st.sampled_from(COLORS), "m": VALUES})
    xs = data.draw(st.lists(rows, min_size=n, max_size=n))
    if data.draw(st.booleans()):
        del xs[-1]["t"]
    ys = [data.draw(st.sampled_from([None, 0.5, -1.0])) for _ in xs]
    one, many = (KernelRegressor(max_features=32, max_inputs=max_inputs, seed=1) for _ in range(2))
    cut = data.draw(st.integers(0, n))
    for part in (slice(0, cut), slice(cut, n)):
        many.advance(xs[part], ys[part])
    for x, y in zip(xs, ys, strict=True):
        one.learn_one(x, y)
    assert many.state_digest() == one.state_digest()


@pytest.mark.parametrize("wrong", [math.inf, 1j, b"a", [1]])
def test_a_refused_value_among_texts_changes_nothing(wrong):
    model = AdaptiveKernelClassifier(seed=1)
    xs, ys = zip(*_colors(30), strict=True)
    model.advance(xs, ys)
    before = model.state_digest()
    with pytest.raises(ValueError, match="input 'noise1' is ") as alone:
        model.learn_one({**xs[3], "noise1": wrong}, ys[3])
    with pytest.raises(ValueError, match="input 'noise1' is ") as among:
        model.advance([*xs[:9], {**xs[3], "color": "new"}, {**xs[3], "noise1": wrong}], ys[:11])
    assert str(among.value) == str(alone.value)
    assert model.state_digest() == before
