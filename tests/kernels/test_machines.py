"""Growing machines with each kernel: what they learn, their state, their steps and what explains them."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from river import optim

from streamkernel import AdaptiveKernelClassifier, KernelClassifier, KernelRegressor, losses
from streamkernel.estimators.base import machine_of
from streamkernel.finite import NotFiniteError
from streamkernel.growth import CDSG, DSG
from streamkernel.growth.base import BlockUpdate
from streamkernel.growth.steps import first_step, no_longer
from streamkernel.kernels import (
    Cauchy,
    ChiSquared,
    DotProduct,
    FourierKernel,
    Gaussian,
    Hellinger,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
    SkewedChiSquared,
)
from tests.kernels.cases import CASES, ONE_OF_EACH


def _stream(n, seed=1):
    """Numbers from 0 up, of which `a` alone matters; `one` is a bias."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0, 2, size=(2, n)).tolist()
    xs = [{"a": x, "b": y, "one": 1.0} for x, y in zip(a, b, strict=True)]
    return xs, [x["a"] > 1 for x in xs]


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_machine_learns_with_each_kernel_and_its_state_has_one_form(name):
    xs, ys = _stream(160)
    model = KernelClassifier(kernel=CASES[name].kernel, standardize=False, batch_size=8, seed=2)
    made = model.advance(xs, ys)
    assert np.isfinite(made.losses).all()
    right = [p == y for p, y in zip(made.predictions[80:], ys[80:], strict=True)]
    assert np.mean(right) > 0.7
    shares = model.feature_importances_
    assert max(shares, key=shares.get) == "a" or (name.startswith("ArcCosine") and shares["a"] > 2 * shares["b"])
    parts = model.explain_one(xs[0], label=True)
    assert sum(parts.values()) == pytest.approx(
        model.predict_proba_one(xs[0])[True] - model.predict_proba_one({})[True], abs=1e-6
    )
    one_by_one = model.clone()
    for x, y in zip(xs[:30], ys[:30], strict=True):
        one_by_one.predict_one(x)
        one_by_one.learn_one(x, y)
    assert one_by_one.state_digest() != model.state_digest()
    one_by_one.learn_many(pd.DataFrame(xs[30:]), ys[30:])
    assert one_by_one.state_digest() == model.state_digest()
    restored = pickle.loads(pickle.dumps(model))
    assert restored.state_digest() == model.state_digest()
    assert restored.predict_proba_one(xs[3]) == model.predict_proba_one(xs[3])
    many = restored.predict_proba_many(pd.DataFrame(xs[:20]))[True]
    assert many.to_numpy() == pytest.approx([model.predict_proba_one(x)[True] for x in xs[:20]], abs=1e-5)


@pytest.mark.parametrize(
    "kernel",
    [
        Laplacian(),
        Cauchy(),
        Matern(),
        Matern(0.5) * Gaussian(),
        2 * Gaussian(),
        Gaussian() + 0.5 * Laplacian(),
        (Cauchy() + Matern(bandwidth=3.0)) * Gaussian(),
    ],
    ids=repr,
)
def test_adaptive_estimators_take_fourier_kernels(kernel):
    xs, ys = _stream(300)
    model = AdaptiveKernelClassifier(kernel=kernel, n_features=32, seed=1)
    made = model.advance(xs, ys)
    assert np.mean([p == y for p, y in zip(made.predictions[100:], ys[100:], strict=True)]) > 0.9
    assert pickle.loads(pickle.dumps(model)).state_digest() == model.state_digest()
    growing = KernelRegressor(kernel=kernel, seed=1)
    growing.advance(xs, [x["a"] for x in xs])
    assert growing.bandwidth == pytest.approx(kernel.median_bandwidth(_standardized(xs[:200])), rel=0.1)


def _standardized(xs):
    X = np.array([list(x.values()) for x in xs])
    return np.divide(X - X.mean(axis=0), X.std(axis=0), out=np.zeros_like(X), where=X.std(axis=0) > 0)


def test_gamma_0_and_the_variance_term_know_how_large_a_kernel_is():
    """A multiple of a kernel takes steps so much shorter that the predictions are the same."""
    xs, _ = _stream(200)
    targets = [math.sin(3 * x["a"]) for x in xs]
    model, multiple = (
        KernelRegressor(
            kernel=k, loss=optim.losses.Absolute(), regularization=0.0, batch_size=8, precondition=False, seed=1
        )
        for k in (Gaussian(1.0), 16 * Gaussian(1.0))
    )
    made, of_multiple = model.advance(xs, targets), multiple.advance(xs, targets)
    assert multiple.gamma_0 == pytest.approx(model.gamma_0 / 16, rel=1e-9)
    assert of_multiple.predictions == pytest.approx(made.predictions, abs=1e-4)
    assert (machine_of(model).feature_scale.noise, machine_of(multiple).feature_scale.noise) == (4.0, 4.0)
    K = np.eye(4)
    assert first_step(K, 1.0, 8) == pytest.approx(1 / (1 / 4 + 1 / 8 + 1 / 4), rel=1e-6)
    assert first_step(K, 1.0, 8, kappa=3.0, feature_bound=5.0) == pytest.approx(1 / (1 / 4 + 5 / 8 + 3 / 4), rel=1e-6)


def test_a_multiple_of_a_kernel_takes_the_same_preconditioned_steps():
    """The ridge is that of the features."""
    xs, _ = _stream(200)
    one, other = (
        KernelRegressor(k, growth=DSG(), regularization=0.0, batch_size=8, precondition=True, seed=1)
        for k in (Gaussian(1.0), 16 * Gaussian(1.0))
    )
    predicted = [model.advance(xs, [x["a"] for x in xs]).predictions for model in (one, other)]
    np.testing.assert_allclose(*predicted, rtol=1e-3, atol=1e-3)


def test_bounds_that_a_kernel_does_not_state_are_measured_and_kept():
    xs, ys = _stream(64)
    kernel = ChiSquared()
    model = KernelClassifier(kernel=kernel, batch_size=16, precondition=False, seed=1)
    assert model.__getstate__()["kappa"] == 0.0
    model.advance(xs[:16], ys[:16])
    state = model.__getstate__()
    X = np.array([list(x.values()) for x in xs[:16]])
    assert state["kappa"] == pytest.approx(np.diag(kernel.matrix(X, X, 1.0)).max(), rel=1e-6)
    assert state["kappa"] < state["feature_bound"] < 20 * state["kappa"]
    model.advance(xs[16:], ys[16:])
    assert model.__getstate__()["kappa"] == state["kappa"]
    for field, value in (("kappa", None), ("feature_bound", math.nan), ("feature_bound", -1.0)):
        spoilt = {**model.__getstate__(), field: value}
        with pytest.raises(ValueError, match=f"field '{field}'"):
            model.clone().__setstate__(spoilt)
    assert "kappa" not in KernelClassifier(seed=1).__getstate__()
    model = KernelClassifier(kernel=Hellinger(), batch_size=2, precondition=False, seed=1)
    for _ in range(4):
        model.learn_one({"a": 0.0}, True)
    assert machine_of(model).feature_scale.kappa == 1.0


def test_steps_on_features_without_a_bound_are_cut_where_they_would_diverge():
    X = np.random.default_rng(5).normal(size=(600, 3))
    xs, ys = [dict(enumerate(x)) for x in X.tolist()], (X[:, 0] * X[:, 1]).tolist()
    for kernel in (Polynomial(3), DotProduct([0.0, 1.0, 1.0, 0.2])):
        for loss, cap in ((None, 1), (losses.EpsilonInsensitive(), 1), (None, 2), (losses.EpsilonInsensitive(), 2)):
            model = KernelRegressor(kernel=kernel, loss=loss, growth=CDSG(cap), batch_size=8, seed=1)
            made = model.advance(xs, ys)
            assert np.abs(made.predictions).max() < 100
    cut = no_longer(BlockUpdate(0, np.array([1.0, 3.0]), 3.0, 0.5), 2.0)
    assert cut.size.tolist() == [1.0, 2.0]
    assert cut.decay == 2.0
    assert math.isnan(cut.margin)
    whole = BlockUpdate(0, 1.0, 1.0, 0.5)
    assert no_longer(whole, 2.0) is whole


def test_absent_and_late_inputs_change_nothing_before():
    """The features of earlier records are what they were when an input comes."""
    for kernel in (Polynomial(2), ChiSquared(), SkewedChiSquared() + DotProduct()):
        model = KernelRegressor(kernel=kernel, batch_size=4, seed=1)
        xs, _ = _stream(20)
        model.advance(xs, [x["a"] for x in xs])
        before = model.predict_one(xs[0])
        assert model.predict_one({**xs[0], "late": 0.0, "none": None}) == before
        for late in range(3):
            model.learn_one({**xs[1], f"late {late}": 1.0}, None)
        assert model.predict_one(xs[0]) == before
        assert model.predict_one({**xs[0], "late": 2.0}) != before


class Own(Kernel):
    """k(x, x') = prod_j (1 + x_j x'_j / 4), by products of inputs with random signs; in numpy, row by row."""

    kappa = None

    def __init__(self, wrong=False):
        self.wrong = wrong

    def matrix(self, X, Y, bandwidth):  # noqa: ARG002
        return np.prod(1 + X[:, None, :] * Y[None, :, :] / 4, axis=2)

    def features(self, X, words, keys, bandwidth, out):  # noqa: ARG002
        assert len(X) == 1
        signs = np.where((words[None, :] * (keys[:, None] | np.uint64(1))) >> np.uint64(63), 1.0, -1.0)
        out[:] = np.prod(1 + X[:, :, None] / 2 * signs, axis=1)
        if self.wrong:
            out[:] = np.nan


class Transformed(FourierKernel):
    """A Gaussian kernel of the inputs' cubic roots."""

    shift_invariant = False
    transforms = True

    def matrix(self, X, Y, bandwidth):
        return Gaussian().matrix(np.cbrt(X), np.cbrt(Y), bandwidth)

    def frequencies(self, words, keys, bandwidth, out):
        Gaussian().frequencies(words, keys, bandwidth, out)

    def transform(self, X):
        return np.cbrt(X)


@pytest.mark.parametrize(
    "kernel", [Own(), Transformed(), 0.5 * Own() + Transformed(), Own() * Laplacian(2.0)], ids=repr
)
def test_a_kernel_of_ones_own(kernel):
    xs, ys = _stream(300)
    model = KernelClassifier(kernel=kernel, batch_size=8, seed=1)
    made = model.advance(xs, ys)
    assert np.mean([p == y for p, y in zip(made.predictions[150:], ys[150:], strict=True)]) > 0.8
    one_by_one = model.clone()
    for x, y in zip(xs, ys, strict=True):
        one_by_one.learn_one(x, y)
    assert one_by_one.state_digest() == model.state_digest()


def test_frequencies_alone_are_of_a_fourier_kernel():
    with pytest.raises(TypeError, match="Old has frequencies: derive it from"):
        type("Old", (Kernel,), {"matrix": Own.matrix, "frequencies": Transformed.frequencies})


@pytest.mark.parametrize("kernel", [Own(True), Gaussian() + Own(True), Own(True) * Cauchy(), 2.0 * Own(True)], ids=repr)
def test_features_that_are_not_finite_are_told_of(kernel):
    model = KernelClassifier(kernel=kernel, batch_size=2, seed=1)
    with pytest.raises(NotFiniteError, match="the kernel Own gave nan in its method `features`"):
        model.advance([{"a": 1.0}, {"a": 2.0}], [True, False])
