"""Laws of every estimator: neither calls nor copies nor questions change a bit, and weights are numbers from 0 up."""

import math
from dataclasses import replace

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
    KernelMultiTargetRegressor,
    KernelNoveltyDetector,
)
from tests.laws.cases import FAMILIES, cases
from tests.laws.copies import COPIES
from tests.laws.cuts import assert_any_cut, cuts, frame_of, in_cuts, in_single_calls
from tests.laws.one_by_one import assert_predicted_as_one_by_one, assert_probable_as_one_by_one

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:(classes|labels|targets) past max_")
EVERY = pytest.mark.parametrize("family", FAMILIES)


# Cut ------------------------------------------------------------------------------------------------------------------


@EVERY
@settings(max_examples=6)
@given(data=st.data(), cut=cuts())
def test_any_cut_gives_the_same_state_and_predictions(family, data, cut):
    """Whatever the calls, one of everything too, and however the model is copied between them."""
    case = data.draw(cases(family))
    assert_any_cut(case, data.draw(st.sampled_from([cut, cut, cut, [("advance", len(case.xs))]])))


# Copy -----------------------------------------------------------------------------------------------------------------


@EVERY
@settings(max_examples=3)
@given(data=st.data(), cut=cuts())
def test_copies_continue_bit_for_bit_and_share_nothing(family, data, cut):
    """From anywhere: in the middle of a mini-batch, of the warm-up, before the first record."""
    case = data.draw(cases(family, longest=100))
    at = data.draw(st.integers(0, len(case.xs)))
    begun = replace(case, xs=case.xs[:at], ys=case.ys[:at], ws=case.ws[:at])
    model, _ = in_cuts(case.fresh(), begun, cut)
    before = model.state_digest()
    twins = {name: copied(model) for name, copied in COPIES.items()}
    rest = [(name, in_cuts(twin, case, cut, start=at)) for name, twin in twins.items() if type(twin) is type(model)]
    assert len(rest) == len(COPIES)
    assert model.state_digest() == before
    expected = in_single_calls(model, case, start=at)
    for name, (twin, results) in rest:
        results.assert_same(expected)
        assert twin.state_digest() == model.state_digest(), name
        assert twin.n_records == model.n_records, name


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("model", [KernelClassifier(batch_size=2), AdaptiveKernelClassifier(n_features=8)])
def test_an_undetermined_seed_is_kept_by_copies(copied, model):
    model = model.clone()
    xs = [{"a": i / 3} for i in range(20)]
    model.advance(xs, [i % 2 for i in range(20)])
    twin = copied(model)
    assert twin.seed is None
    assert twin.advance(xs, [i % 2 for i in range(20)]).losses.tolist() == (
        model.advance(xs, [i % 2 for i in range(20)]).losses.tolist()
    )
    assert model.clone().__getstate__()["seed"] != model.__getstate__()["seed"]


# Questions ------------------------------------------------------------------------------------------------------------


def _answers(model, x):
    """All that is said of a record."""
    if isinstance(model, KernelNoveltyDetector):
        return [model.score_one(x)]
    said = [model.predict_one(x)]
    if isinstance(model, base.Classifier):
        said.append(model.predict_proba_one(x))
    if isinstance(model, AdaptiveKernelRegressor | GaussianProcessRegressor):
        said.append(model.predict_one(x, with_dist=True))
    return said


def _ask_of_many(model, X):
    if isinstance(model, KernelNoveltyDetector):
        return np.asarray(model.score_many(X)).tolist()
    if isinstance(model, base.Classifier):
        model.predict_proba_many(X)
    if isinstance(model, AdaptiveKernelRegressor | GaussianProcessRegressor):
        model.predict_many(X, with_dist=True)
    return np.asarray(model.predict_many(X)).tolist()


@EVERY
@settings(max_examples=4)
@given(data=st.data())
def test_no_question_changes_the_state(family, data):
    case = data.draw(cases(family, longest=120))
    seen = data.draw(st.integers(0, len(case.xs)))
    model = case.fresh()
    model.advance(case.xs[:seen], case.ys[:seen], case.ws[:seen])
    before = model.state_digest()
    rest = case.xs[seen : seen + 5]
    new = [{}, {"unseen": 1.0, "x0": -3.0, "text": "unseen"}, {"zero": 0, "a": "b", "c": False, "other": -1.5}]
    asked = [*rest, *new, *({**x, **unseen} for x, unseen in zip(rest, new, strict=False))]
    answers = [_answers(model, x)[0] for x in asked]
    for make in (pd.DataFrame, pl.DataFrame):
        _ask_of_many(model, frame_of(make, asked))
    assert model.advance(asked, [None] * len(asked)).predictions == answers
    repr(model)
    str(model)
    model.clone()
    for name in dir(model):
        if not name.startswith("__"):
            getattr(model, name, None)  # the experts are a mixture's only
    assert model.state_digest() == before


@EVERY
@settings(max_examples=4)
@given(data=st.data())
def test_predictions_of_many_are_those_of_one(family, data):
    case = data.draw(cases(family, longest=120))
    model = case.fresh()
    model.advance(case.xs, case.ys, case.ws)
    rows = [x for x in case.xs[-20:] if x] or [{"x0": 1.0}]
    frame = frame_of(pd.DataFrame, rows)
    frame.index = [f"row{i}" for i in range(len(rows))]
    if family == "novelty":
        assert model.score_many(frame).tolist() == pytest.approx([model.score_one(x) for x in rows], rel=1e-4, abs=1e-4)
        return
    many = model.predict_many(frame)
    if family == "several":
        for row, x in zip(many.to_dict("records"), rows, strict=True):
            assert list(row) == list(many.columns) == [*model.predict_one(x)]
            if isinstance(model, KernelMultiTargetRegressor):
                assert row == pytest.approx(
                    model.predict_one(x), rel=1e-4, abs=1e-4 * max(map(abs, row.values()), default=1)
                )
        return
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


# Weight ---------------------------------------------------------------------------------------------------------------


@EVERY
@settings(max_examples=3)
@given(data=st.data())
def test_a_weight_is_1_unless_given_and_from_0_up(family, data):
    case = data.draw(cases(family, longest=60))
    model, weighted = case.fresh(), case.fresh()
    model.advance(case.xs, case.ys)
    weighted.advance(case.xs, case.ys, [1.0] * len(case.xs))
    before = weighted.state_digest()
    assert model.state_digest() == before
    label = [] if family == "novelty" else [next((y for y in case.ys if y is not None), case.ys[0])]
    for wrong in (-1.0, math.nan, math.inf):
        calls = [
            lambda wrong=wrong: model.advance(case.xs, case.ys, [1.0] * (len(case.xs) - 1) + [wrong]),
            lambda wrong=wrong: model.learn_one({"x0": 1.0, "never": 2.0}, *label, w=wrong),
            lambda wrong=wrong: model.learn_many(pd.DataFrame({"never": [1.0]}), *([y] for y in label), [wrong]),
        ]
        for call in calls:
            with pytest.raises(ValueError, match=r"^a weight is negative or not finite"):
                call()
            assert model.state_digest() == before
