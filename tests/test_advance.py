"""One learning path: however a stream is cut into calls, state and predictions are the same, bit for bit."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import base

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelRegressor,
)
from streamkernel.kernels import Gaussian
from tests.one_by_one import assert_predicted_as_one_by_one, assert_probable_as_one_by_one
from tests.stream_cases import cases
from tests.stream_cuts import assert_any_cut, cuts, frame_of, in_cuts

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")


FAMILIES = pytest.mark.parametrize("family", ["growing", "adaptive", "process", "least squares"])


@FAMILIES
@settings(max_examples=60)
@given(data=st.data(), cut=cuts())
def test_any_cut_gives_the_same_state_and_predictions(family, data, cut):
    assert_any_cut(data.draw(cases(family)), cut)


@pytest.mark.long
@FAMILIES
@settings(max_examples=2000, derandomize=False)
@given(data=st.data(), cut=cuts())
def test_any_cut_at_length(family, data, cut):
    assert_any_cut(data.draw(cases(family, longest=700)), cut)


@FAMILIES
@settings(max_examples=15)
@given(data=st.data())
def test_one_call_of_everything(family, data):
    case = data.draw(cases(family, longest=600))
    assert_any_cut(case, [("advance", len(case.xs))])


@FAMILIES
@settings(max_examples=30)
@given(data=st.data())
def test_no_inference_changes_the_state(family, data):
    case = data.draw(cases(family, longest=120))
    model = case.fresh()
    seen = data.draw(st.integers(0, len(case.xs)))
    in_cuts(model, case, [("advance", 50)]) if seen == len(case.xs) else model.advance(case.xs[:seen], case.ys[:seen])
    before = model.state_digest()
    asked = [*case.xs[seen : seen + 5], {}, {"unseen": 1.0, "x0": -3.0, "text": "unseen"}]
    frame = frame_of(pd.DataFrame, asked)
    for x in asked:
        model.predict_one(x)
    model.predict_many(frame)
    model.predict_many(frame_of(pl.DataFrame, asked))
    if isinstance(model, AdaptiveKernelRegressor | GaussianProcessRegressor):
        for x in asked:
            model.predict_one(x, with_dist=True)
        model.predict_many(frame, with_dist=True)
    if isinstance(model, base.Classifier):
        for x in asked:
            model.predict_proba_one(x)
        model.predict_proba_many(frame)
        model.predict_proba_many(frame_of(pl.DataFrame, asked))
    model.advance(asked, [None] * len(asked))
    assert model.state_digest() == before
    repr(model)
    str(model)
    model.clone()
    for name in dir(model):
        if not name.startswith("__"):
            getattr(model, name)
    assert model.state_digest() == before


@FAMILIES
@settings(max_examples=30)
@given(data=st.data())
def test_predictions_of_many_are_those_of_one(family, data):
    case = data.draw(cases(family, longest=120))
    model = case.fresh()
    model.advance(case.xs, case.ys, case.ws)
    rows = [x for x in case.xs[-30:] if x] or [{"x0": 1.0}]
    frame = frame_of(pd.DataFrame, rows)
    frame.index = [f"row{i}" for i in range(len(rows))]
    many = model.predict_many(frame)
    assert_predicted_as_one_by_one(model, rows, many.tolist())
    assert many.index.tolist() == frame.index.tolist()
    assert_predicted_as_one_by_one(model, rows, model.predict_many(frame_of(pl.DataFrame, rows)).to_list())
    if isinstance(model, AdaptiveKernelRegressor | GaussianProcessRegressor):
        ones = [model.predict_one(x, with_dist=True) for x in rows]
        found = model.predict_many(frame, with_dist=True)
        assert found["mu"].tolist() == [one.mu for one in ones]
        assert found["sigma"].tolist() == pytest.approx([one.sigma for one in ones], rel=1e-15)
    if isinstance(model, base.Classifier):
        many = model.predict_proba_many(frame)
        assert_probable_as_one_by_one(model, rows, many.to_dict("records"))
        assert many.index.tolist() == frame.index.tolist()


def test_the_restart_begins_anew_at_the_two_hundredth_label():
    """As a fresh machine would have learnt these records, had it known the bandwidth."""
    rng = np.random.default_rng(0)
    xs = [{"a": float(v), "b": float(w), "c": "uvw"[i % 3]} for i, (v, w) in enumerate(rng.normal(size=(230, 2)))]
    ys = [x["a"] * x["b"] > 0 for x in xs]
    model = KernelClassifier(seed=1, batch_size=16)
    model.advance(xs[:199], ys[:199])
    first = model.bandwidth
    model.advance([*xs[:5], xs[199]], [None] * 5 + [ys[199]])
    assert model.bandwidth != first
    assert model.bandwidth == pytest.approx(0.7 * math.sqrt(4), rel=0.5)
    model.advance(xs[200:], ys[200:])
    known = KernelClassifier(kernel=Gaussian(model.bandwidth), seed=1, batch_size=16)
    known.advance(xs, ys)
    fields = ("input_moments", "alpha", "scale", "beta", "t", "gamma_0", "n_grown", "n_reused", "batch_rows")
    for name in fields:
        assert np.array_equal(model.__getstate__()[name], known.__getstate__()[name]), name
    assert model.n_records == 230


def test_a_partial_mini_batch_is_never_flushed():
    model = KernelClassifier(seed=1, batch_size=10, kernel=Gaussian(1.0))
    xs = [{"a": float(i % 7)} for i in range(29)]
    steps = []
    for i, x in enumerate(xs):
        model.learn_one(x, i % 2)
        steps.append(model.n_steps)
    assert steps == [0] * 9 + [1] * 10 + [2] * 10


def test_nothing_is_learnt_from_nothing():
    growing = KernelClassifier(seed=1), KernelRegressor(seed=1)
    others = AdaptiveKernelClassifier(seed=1), AdaptiveKernelRegressor(seed=1), GaussianProcessRegressor(seed=1)
    by_batches = KernelLeastSquaresClassifier(seed=1), KernelLeastSquaresRegressor(seed=1)
    for model in (*growing, *others, *by_batches):
        before = model.state_digest()
        outcome = model.advance([], [])
        assert (outcome.predictions, outcome.losses.shape) == ([], (0,))
        model.learn_many(pd.DataFrame({"a": []}), [])
        assert model.state_digest() == before
        model.advance([{}] * 70, [1] * 70)  # records without any input
        assert model.n_records == 70
    assert [model.n_steps for model in growing] == [2, 2]
