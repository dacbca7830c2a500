"""Streams of finite numbers of any size, in any order: every prediction and every state is finite."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.optim.losses import Absolute, Hinge, Huber, Squared
from river.optim.schedulers import Constant

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelMultiTargetRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
)
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian, Polynomial
from streamkernel.losses import EpsilonInsensitive, Log, Quantile, Softmax, SquaredHinge

LARGEST = 1.7976931348623157e308
GROWTHS = [CDSG(), CDSG(cap=2.0), DSG(), UDSG()]
KERNELS = [None, None, Gaussian(1e-300), Gaussian(1e300), Gaussian(structured=True)]
ADAPTIVE = {"n_features": 4, "n_trees": 1, "tree_window": 40, "buffer_size": 20, "metric_schedule": (20, 60)}
SCALED = st.sampled_from([None, None, False])


def _growing(kind, losses):
    return st.builds(
        kind,
        loss=st.sampled_from(losses),
        growth=st.sampled_from(GROWTHS),
        kernel=st.sampled_from(KERNELS),
        step=st.sampled_from([None, None, Constant(1e300)]),
        regularization=st.sampled_from([1e-6, 1e300]),
        block_size=st.just(4),
        batch_size=st.sampled_from([1, 8]),
        max_features=st.just(16),
        standardize=SCALED,
        seed=st.just(1),
    )


DETECTORS = {
    "kernel": st.sampled_from([*KERNELS, 1e6 * Gaussian(1.0), Polynomial(3)]),
    "batch_size": st.just(8),
    "seed": st.just(1),
}
MODELS = {
    "growing classifier": _growing(KernelClassifier, [Softmax(), Log(), Hinge(), SquaredHinge()]),
    "growing regressor": _growing(
        KernelRegressor, [Squared(), Huber(1.0), Absolute(), EpsilonInsensitive(), Quantile(0.9)]
    ),
    "several": _growing(KernelMultiTargetRegressor, [Squared(), Huber(1.0), EpsilonInsensitive()]),
    "adaptive classifier": st.builds(
        AdaptiveKernelClassifier, **{k: st.just(v) for k, v in ADAPTIVE.items()}, standardize=SCALED, seed=st.just(1)
    ),
    "process": st.builds(
        GaussianProcessRegressor,
        kernel=st.sampled_from([*KERNELS[:-1], 1e30 * Gaussian()]),
        noise=st.sampled_from([1e24, 1e300]),
        n_features=st.just(4),
        variance=st.sampled_from([None, VarianceOperator(3, 2, 6), TestPointFunctions([{"a": 1e200}, {}], 3, 2, 6)]),
        normalize_y=st.booleans(),
        standardize=SCALED,
        seed=st.just(1),
    ),
    "least squares classifier": st.builds(
        KernelLeastSquaresClassifier, n_features=st.just(4), standardize=SCALED, seed=st.just(1)
    ),
    "least squares regressor": st.builds(
        KernelLeastSquaresRegressor, n_features=st.just(4), standardize=SCALED, seed=st.just(1)
    ),
    "novelty": st.builds(KernelNoveltyDetector, **DETECTORS),
    "ratio": st.builds(KernelDensityRatio, p=st.just(True), q=st.just(False), **DETECTORS),
    "adaptive regressor": st.builds(
        AdaptiveKernelRegressor, **{k: st.just(v) for k, v in ADAPTIVE.items()}, standardize=SCALED, seed=st.just(1)
    ),
}

any_finite = st.one_of(
    st.floats(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, 1.0, 1e42, -1e42, 1.3e154, 1e200, LARGEST, -LARGEST, 5e-324, 1e-160, -3e-162]),
)
weights = st.sampled_from([1.0, 1.0, 1.0, 0.0, 5e-324, 1e300, LARGEST])
others = st.sampled_from([None, math.nan, True, "", "a", "nan", 10**299, -(10**299)])
odd_records = st.tuples(
    st.dictionaries(st.sampled_from(["a", "b"]), any_finite), st.dictionaries(st.sampled_from(["c", 1, "1"]), others)
).map(lambda pair: pair[0] | pair[1])
#: Some records as they are drawn, and how many normal ones come before them.
parts = st.lists(
    st.tuples(st.integers(0, 40), st.lists(st.tuples(odd_records, any_finite, weights), max_size=4)),
    min_size=1,
    max_size=4,
)


def _stream(drawn):
    rng = np.random.default_rng(len(drawn))
    for n_normal, odd in drawn:
        for a, b in rng.normal(size=(n_normal, 2)).tolist():
            yield {"a": a, "b": b}, math.sin(a) + b, 1.0
        yield from odd


def _assert_finite(values):
    assert np.isfinite(np.array(list(values), np.float64)).all()


def _assert_said_well(model, x, has_learned):
    if isinstance(model, KernelNoveltyDetector):
        _assert_finite([model.score_one(x), model.threshold])
    elif hasattr(model, "predict_proba_one"):
        said, probabilities = model.predict_one(x), model.predict_proba_one(x)
        assert list(probabilities) == model.classes
        assert all(0 <= p <= 1 for p in probabilities.values())
        assert sum(probabilities.values()) == pytest.approx(1.0 if probabilities else 0.0, abs=1e-9)
        assert said == max(probabilities, key=probabilities.get, default=None)
    else:
        said = model.predict_one(x)
        _assert_finite(said.values() if isinstance(said, dict) else [said])
        _assert_finite(model.predict_many(np.array([[x["a"], x["b"]]])))
    if isinstance(model, AdaptiveKernelRegressor | GaussianProcessRegressor):
        gaussian = model.predict_one(x, with_dist=True)
        assert gaussian.mu == model.predict_one(x)
        if isinstance(model, AdaptiveKernelRegressor) and not has_learned:
            assert math.isnan(gaussian.sigma)  # 0 would claim certainty
        else:
            _assert_finite([gaussian.sigma])
            assert gaussian.sigma >= 0
    if isinstance(model, AdaptiveKernelClassifier | AdaptiveKernelRegressor):
        shares = model.expert_weights.values()
        assert sum(shares) == pytest.approx(1.0 if model.n_records else 0.0)
        assert all(0 <= share <= 1 for share in shares)


@pytest.mark.filterwarnings("ignore:inputs past max_inputs")
@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=6)
@given(data=st.data())
def test_finite_streams_stay_finite(kind, data):
    model, records = data.draw(MODELS[kind]), list(_stream(data.draw(parts)))
    of_sides = kind == "ratio" or hasattr(model, "predict_proba_one")
    for start in range(0, len(records), 40):
        xs, ys, ws = zip(*records[start : start + 40], strict=True)
        given_xs = repr(xs)
        if kind == "several":
            ys = [{"p": y, "q": -y / 2, "r": y if y > 1 else None} for y in ys]
        outcome = model.advance(xs, [y > 0 for y in ys] if of_sides else ys, ws)
        assert repr(xs) == given_xs
        _assert_finite(outcome.losses)
        said = outcome.predictions if kind == "several" else [dict(enumerate(outcome.predictions))]
        for prediction in outcome.probabilities or said:
            _assert_finite(prediction.values())
        # A state that is not finite is refused where it is written.
        other = pickle.loads(pickle.dumps(model))
        assert other.state_digest() == model.state_digest()
        for x in ({"a": LARGEST, "b": -1e42}, {"a": 0.5}, {}, {"new": -LARGEST, "word": "unseen"}):
            _assert_said_well(other, {"a": 0.1, "b": 0.2} | x, any(w > 0 for _, _, w in records[: start + 40]))
