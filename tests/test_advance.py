"""One learning path: however a stream is cut into calls, state and predictions are the same, bit for bit."""

import copy
import math
import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import base
from river.optim.losses import Absolute, Hinge, Huber
from river.optim.schedulers import InverseScaling

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor, losses
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian
from streamkernel.state import from_bytes, to_bytes
from tests.one_by_one import assert_predicted_as_one_by_one, assert_probable_as_one_by_one

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")

GROWTHS = [None, DSG(), UDSG(), UDSG(grow=1, reuse=2), CDSG(cap=3.0)]
TWO_SIDED = [losses.Log(), losses.SquaredHinge(), Hinge()]
FAMILIES = pytest.mark.parametrize("family", ["growing", "adaptive"])
NUMERIC = [None, Huber(1.0), Absolute(), losses.EpsilonInsensitive(), losses.Quantile(0.7)]


@dataclass(frozen=True)
class Case:
    """A model and a stream for it."""

    model: Any
    xs: list[dict[Any, Any]]
    ys: list[Any]
    ws: list[float]

    def fresh(self):
        return self.model.clone()


@st.composite
def models(draw, **fixed):
    arguments = {
        "kernel": draw(st.sampled_from([None, None, Gaussian(1.5)])),
        "growth": draw(st.sampled_from(GROWTHS)),
        "block_size": draw(st.sampled_from([1, 3, 8, 32])),
        "batch_size": draw(st.integers(1, 40)),
        "step": draw(st.sampled_from([None, None, InverseScaling(0.5, 0.5)])),
        "regularization": draw(st.sampled_from([1e-6, 0.3])),
        "standardize": draw(st.sampled_from([None, None, False])),
        "max_inputs": draw(st.sampled_from([10_000, 10_000, 9])),
        "cache_bytes": draw(st.sampled_from([2**26, 2000, 0])),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "seed": draw(st.integers(0, 2**64 - 1)),
        **fixed,
    }
    # A machine of width-1 blocks that grows at every record is slow in plain Python; its budget is small here.
    arguments["max_features"] = draw(st.sampled_from([40, 128]))
    return arguments


@st.composite
def adaptive_models(draw, **fixed):
    return {
        "kernel": draw(st.sampled_from([None, None, Gaussian(1.5)])),
        "n_features": draw(st.sampled_from([1, 5, 16, 40])),
        "ridge": draw(st.sampled_from([0.03, 0.1, 2.0])),
        "drift_rates": draw(st.sampled_from([(0.0, 1e-3, 3e-2), (0.1,), (0.0, 1.0)])),
        "metric_schedule": draw(st.sampled_from([(100, 250, 500, 1000), None, (1, 2, 60, 61), (5, 40, 300), (1,)])),
        "buffer_size": draw(st.sampled_from([1000, 1, 30])),
        "standardize": draw(st.sampled_from([None, None, False])),
        "max_inputs": draw(st.sampled_from([1000, 1000, 9])),
        "seed": draw(st.integers(0, 2**64 - 1)),
        **fixed,
    }


@st.composite
def cases(draw, family, longest=260):
    """Late inputs, strings, booleans, absent values, classes that join, weights, records without a label.

    Or, as records that hold the same numbers throughout have a way of their own, nothing but numbers.
    """
    n = draw(st.integers(1, longest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d = draw(st.integers(1, 12))
    numbers_only = draw(st.sampled_from([False, False, True]))
    late = 0 if numbers_only else draw(st.integers(0, 12))
    n_values = draw(st.integers(1, 20))
    missing = 0.0 if numbers_only else draw(st.sampled_from([0.0, 0.2]))
    unlabelled = draw(st.sampled_from([0.0, 0.1, 0.5]))
    appears = {f"late{j}": int(rng.integers(0, n)) for j in range(late)}
    xs = []
    for i in range(n):
        x = {f"x{j}": float(v) for j, v in enumerate(rng.normal(size=d))}
        x |= {name: float(rng.normal()) for name, first in appears.items() if i >= first and rng.random() < 0.7}
        if not numbers_only:
            x["text"] = f"v{rng.integers(0, 1 + n_values * i // n)}"
            x["flag"] = bool(rng.random() < 0.3)
        x["whole"] = int(rng.integers(-3, 4))
        xs.append({name: v for name, v in x.items() if rng.random() >= missing})
    kind = draw(st.sampled_from(["classes", "classes", "sides", "numbers"]))
    adaptive = family == "adaptive"
    if kind == "classes":
        K = draw(st.integers(1, 12))
        known = 1 + np.arange(n) * K // n
        ys = [f"c{rng.integers(0, k)}" for k in known]
        limits = {"max_classes": draw(st.sampled_from([1000, 1000, 3]))}
        model = (
            AdaptiveKernelClassifier(**draw(adaptive_models(**limits)))
            if adaptive
            else KernelClassifier(**draw(models(**limits)))
        )
    elif kind == "sides":
        names = draw(st.sampled_from([(False, True), (0, 1), ("a", "b")]))
        ys = [names[int(rng.random() < 0.5)] for _ in range(n)]
        model = (
            AdaptiveKernelClassifier(**draw(adaptive_models()))
            if adaptive
            else KernelClassifier(**draw(models(loss=draw(st.sampled_from(TWO_SIDED)))))
        )
    else:
        ys = [float(3 * x.get("x0", 0.0) + rng.normal()) for x in xs]
        model = (
            AdaptiveKernelRegressor(**draw(adaptive_models()))
            if adaptive
            else KernelRegressor(**draw(models(loss=draw(st.sampled_from(NUMERIC)))))
        )
    ys = [None if rng.random() < unlabelled else y for y in ys]
    ws = [float(w) for w in (rng.choice([1.0, 0.0, 0.5, 3.0], n) if draw(st.booleans()) else np.ones(n))]
    return Case(model, xs, ys, ws)


@st.composite
def cuts(draw):
    """How a stream is taken: a list of (kind of call, number of records), repeated until the stream ends."""
    kinds = st.sampled_from(["advance", "learn_one", "pandas", "polars"])
    return draw(st.lists(st.tuples(kinds, st.integers(1, 120)), min_size=1, max_size=6))


@dataclass
class Told:
    """What a model said of a stream, record by record; None where the call said nothing."""

    predictions: list[Any]
    probabilities: list[Any]
    losses: list[Any]

    @classmethod
    def nothing(cls):
        return cls([], [], [])

    def add(self, outcome):
        self.predictions += outcome.predictions
        self.probabilities += outcome.probabilities or [None] * len(outcome.predictions)
        self.losses += outcome.losses.tolist()

    def skip(self, n):
        for told in (self.predictions, self.probabilities, self.losses):
            told += [None] * n

    def assert_same(self, other):
        """Wherever both said something."""
        for i, loss in enumerate(self.losses):
            if loss is None or other.losses[i] is None:
                continue
            assert self.predictions[i] == other.predictions[i], i
            assert self.probabilities[i] == other.probabilities[i], i
            assert list(self.probabilities[i] or ()) == list(other.probabilities[i] or ()), i
            assert loss == other.losses[i] or (math.isnan(loss) and math.isnan(other.losses[i])), i


def _frame(make, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    return make({name: [row.get(name) for row in rows] for name in names or ["absent"]})


def _take(model, case, kind, part, told):
    xs, ys, ws = case.xs[part], case.ys[part], case.ws[part]
    if kind == "advance":
        told.add(model.advance(xs, ys, ws))
        return
    if kind == "learn_one" or not any(xs):
        for x, y, w in zip(xs, ys, ws, strict=True):
            model.learn_one(x, y, w=w)
    else:
        model.learn_many(_frame(pd.DataFrame if kind == "pandas" else pl.DataFrame, xs), ys, ws)
    told.skip(len(xs))


def _in_cuts(model, case, cut, start=0, told=None):
    told = told or Told.nothing()
    i = 0
    while start < len(case.xs):
        kind, n = cut[i % len(cut)]
        part = slice(start, start + n)
        _take(model, case, kind, part, told)
        start += n
        i += 1
    return told


def _one_by_one(model, case, start=0):
    told = Told.nothing()
    for part in range(start, len(case.xs)):
        told.add(model.advance([case.xs[part]], [case.ys[part]], [case.ws[part]]))
    return told


def _assert_any_cut(case, cut):
    one, other = case.fresh(), case.fresh()
    expected = _one_by_one(one, case)
    _in_cuts(other, case, cut).assert_same(expected)
    assert other.state_digest() == one.state_digest()


@FAMILIES
@settings(max_examples=60)
@given(data=st.data(), cut=cuts())
def test_any_cut_gives_the_same_state_and_predictions(family, data, cut):
    _assert_any_cut(data.draw(cases(family)), cut)


@pytest.mark.long
@FAMILIES
@settings(max_examples=2000, derandomize=False)
@given(data=st.data(), cut=cuts())
def test_any_cut_at_length(family, data, cut):
    _assert_any_cut(data.draw(cases(family, longest=700)), cut)


@FAMILIES
@settings(max_examples=15)
@given(data=st.data())
def test_one_call_of_everything(family, data):
    case = data.draw(cases(family, longest=600))
    _assert_any_cut(case, [("advance", len(case.xs))])


@FAMILIES
@settings(max_examples=30)
@given(data=st.data())
def test_no_inference_changes_the_state(family, data):
    case = data.draw(cases(family, longest=120))
    model = case.fresh()
    seen = data.draw(st.integers(0, len(case.xs)))
    _in_cuts(model, case, [("advance", 50)]) if seen == len(case.xs) else model.advance(case.xs[:seen], case.ys[:seen])
    before = model.state_digest()
    asked = [*case.xs[seen : seen + 5], {}, {"unseen": 1.0, "x0": -3.0, "text": "unseen"}]
    frame = _frame(pd.DataFrame, asked)
    for x in asked:
        model.predict_one(x)
    model.predict_many(frame)
    model.predict_many(_frame(pl.DataFrame, asked))
    if isinstance(model, AdaptiveKernelRegressor):
        for x in asked:
            model.predict_one(x, with_dist=True)
    if isinstance(model, base.Classifier):
        for x in asked:
            model.predict_proba_one(x)
        model.predict_proba_many(frame)
        model.predict_proba_many(_frame(pl.DataFrame, asked))
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
    frame = _frame(pd.DataFrame, rows)
    frame.index = [f"row{i}" for i in range(len(rows))]
    many = model.predict_many(frame)
    assert_predicted_as_one_by_one(model, rows, many.tolist())
    assert many.index.tolist() == frame.index.tolist()
    assert_predicted_as_one_by_one(model, rows, model.predict_many(_frame(pl.DataFrame, rows)).to_list())
    if isinstance(model, base.Classifier):
        many = model.predict_proba_many(frame)
        assert_probable_as_one_by_one(model, rows, many.to_dict("records"))
        assert many.index.tolist() == frame.index.tolist()


# Copies ---------------------------------------------------------------------------------------------------------------


def _by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def _by_clone(model):
    return model.clone(include_attributes=True)


def _by_bytes(model):
    copied = model.clone()
    copied.__setstate__(from_bytes(to_bytes(model.__getstate__())))
    return copied


COPIES = {"pickle": _by_pickle, "deepcopy": copy.deepcopy, "clone": _by_clone, "bytes": _by_bytes}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@FAMILIES
@settings(max_examples=25)
@given(cut=cuts(), data=st.data())
def test_copies_continue_bit_for_bit(copied, family, cut, data):
    """From anywhere: in the middle of a mini-batch, of the rehearsal, before the first record."""
    case = data.draw(cases(family))
    at = data.draw(st.integers(0, len(case.xs)))
    model = case.fresh()
    begun = replace(case, xs=case.xs[:at], ys=case.ys[:at], ws=case.ws[:at])
    _in_cuts(model, begun, cut)
    twin = copied(model)
    assert type(twin) is type(model)
    assert twin.state_digest() == model.state_digest()
    before = model.state_digest()
    asked = case.xs[at:][:3]
    assert [twin.predict_one(x) for x in asked] == [model.predict_one(x) for x in asked]
    expected = _one_by_one(twin, case, start=at)
    assert model.state_digest() == before  # the twin shares nothing
    told = Told.nothing()
    _in_cuts(model, case, cut, start=at, told=told)
    told.assert_same(expected)
    assert model.state_digest() == twin.state_digest()
    assert model.n_records == twin.n_records


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
    for model in (*growing, AdaptiveKernelClassifier(seed=1), AdaptiveKernelRegressor(seed=1)):
        before = model.state_digest()
        outcome = model.advance([], [])
        assert (outcome.predictions, outcome.losses.shape) == ([], (0,))
        model.learn_many(pd.DataFrame({"a": []}), [])
        assert model.state_digest() == before
        model.advance([{}] * 70, [1] * 70)  # records without any input
        assert model.n_records == 70
    assert [model.n_steps for model in growing] == [2, 2]
