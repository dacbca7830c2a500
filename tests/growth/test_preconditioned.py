"""Preconditioned blocks, several blocks a step, and the averaged solution, number for number."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.optim.losses import Hinge
from river.optim.schedulers import Constant

from streamkernel import KernelClassifier, KernelRegressor, losses
from streamkernel.estimators.base import machine_of
from streamkernel.finite import NotFiniteError
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.growth.preconditioner import preconditioned_gradient
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.losses import Softmax, curvature
from tests.growth import naive

GROWTHS = [DSG(), UDSG(), CDSG(), CDSG(cap=2.0)]


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 4),
    st.sampled_from([0.25, 0.5, 2.0]),
    st.sampled_from(["ones", "some", "none"]),
    st.integers(0, 2**32),
)
def test_the_gradient_is_preconditioned_by_the_ridge_regressions_matrix(B, D, K, L, weighted, seed):
    rng = np.random.default_rng(seed)
    phi, g = rng.normal(size=(B, D)).astype(np.float32), rng.normal(size=(B, K))
    w = {"ones": np.ones(B), "none": np.zeros(B), "some": rng.uniform(size=B) * (rng.random(B) < 0.7)}[weighted]
    step = preconditioned_gradient(phi, g, w, L)
    if not w.any():
        assert not step.any()
        return
    Phi = phi.astype(float)
    ridge = (w[:, None] * Phi**2).sum() / w.sum()
    expected = np.linalg.solve(Phi.T @ (w[:, None] * Phi) + ridge * np.eye(D), Phi.T @ (w[:, None] * g)) / L
    np.testing.assert_allclose(step, expected.T, rtol=1e-4, atol=1e-5)


class Huge(Kernel):
    """Features whose products are past the largest float."""

    kappa = 1.0

    def __init__(self, feature_bound=None):
        self.feature_bound = feature_bound

    def matrix(self, X, Y, bandwidth):  # noqa: ARG002
        return np.full((len(X), len(Y)), 1e308)

    def features(self, X, words, keys, bandwidth, out):  # noqa: ARG002
        out[:] = 1e200


def test_features_without_end_are_refused_in_a_sentence():
    with pytest.raises(NotFiniteError, match="features are so large"):
        preconditioned_gradient(np.full((3, 4), 1e200), np.ones((3, 1)), np.ones(3), 1.0)
    for kernel, sentence in (
        (Huge(feature_bound=1.0), "^the kernel Huge: features are so large .*: use smaller inputs, "),
        (Huge(), "^the kernel Huge gave .* in its method `features`, whose fourth power is not finite: use smaller"),
    ):
        model = KernelRegressor(kernel, batch_size=2, dtype="float64", seed=1)
        with pytest.raises(NotFiniteError, match=sentence):
            model.learn_many(np.ones((400, 1)), np.arange(400.0))


def _stream(K, n=96, seed=5, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.digitize(np.sin(2 * X[:, 0]) + noise * rng.normal(size=n), np.linspace(-1, 1, K + 1)[1:-1])
    y[:K] = np.arange(K)
    return X, y, rng.uniform(0.5, 2, size=n)


def _by_softmax(y, f):
    scores = np.zeros((len(y), 3)) + f
    return Softmax().gradient(y, scores)


def _by_log(y, f):
    return losses.Log().gradient(y, (np.zeros((len(y), 1)) + f)[:, 0])[:, None]


@pytest.mark.parametrize("average", [False, True], ids=["last", "averaged"])
@pytest.mark.parametrize("precondition", [True, False], ids=["preconditioned", "plain"])
@pytest.mark.parametrize(("K", "size", "F", "blocks"), [(3, 12, 4, 1), (3, 12, 8, 3), (2, 24, 5, 2), (2, 4, 3, 1)])
def test_a_run_is_its_reference(K, size, F, blocks, precondition, average):
    X, y, w = _stream(K)
    loss = losses.Log() if K == 2 else None
    model = KernelClassifier(
        kernel=Gaussian(1.1),
        loss=loss,
        growth=DSG(),
        block_size=F,
        batch_size=size,
        max_features=None,
        step=Constant(0.4),
        regularization=0.01,
        standardize=False,
        dtype="float64",
        seed=3,
        precondition=precondition,
        blocks_per_step=blocks,
        average=average,
    )
    records, labels = [dict(zip("abc", x, strict=True)) for x in X.tolist()], (y > 0).tolist() if K == 2 else y.tolist()
    model.advance(records, labels, w.tolist())

    def frequencies(block):
        return naive.frequencies(machine_of(model), block)

    columns = X[:, ["abc".index(name) for name in model.input_names]]
    solutions = naive.by_mini_batches(
        columns,
        y,
        w,
        frequencies,
        lambda _: 0.4,
        0.01,
        _by_log if K == 2 else _by_softmax,
        size,
        blocks,
        curvature(loss or Softmax()) if precondition else None,
    )
    assert (model.n_grown, model.n_steps) == (blocks * len(solutions), len(solutions))
    alphas = naive.mean_solution(solutions) if average else solutions[-1]
    expected = naive.scores_of(alphas, columns[:9], frequencies)
    np.testing.assert_allclose(machine_of(model).predict(records[:9]), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        machine_of(model).advance(records[:9], [None] * 9).predictions, expected, rtol=1e-8, atol=1e-9
    )
    assert np.abs(expected).max() > 0.05


@pytest.mark.parametrize("growth", GROWTHS, ids=repr)
def test_every_growth_is_preconditioned_and_promises_no_margin(growth):
    X, y, _ = _stream(3, n=1200, noise=0)
    records = [dict(enumerate(x)) for x in X.tolist()]
    accuracy = {}
    for precondition in (True, False):
        model = KernelClassifier(
            Gaussian(1.0), growth=growth, block_size=32, seed=1, precondition=precondition, max_features=320
        )
        predicted = model.advance(records, y.tolist()).predictions
        accuracy[precondition] = np.mean(np.array(predicted[600:]) == y[600:])
        assert model.n_features <= 320
        assert (model.n_grown + model.n_reused, model.n_steps) == (74 if precondition else 37, 37)
        assert model.n_reused > 0
        if precondition or not isinstance(growth, CDSG):
            assert math.isnan(model.last_check_margin)
    assert accuracy[True] > 0.7


def test_what_is_given_decides_and_none_follows_the_schedule():
    steps = [
        (updates.preconditioned, updates.blocks_per_step, machine.expansion.block_size)
        for step in (None, Constant(0.1))
        for given in (None, True, False)
        for machine in [machine_of(KernelClassifier(growth=CDSG(), step=step, precondition=given))]
        for updates in [machine.updates]
    ]
    with_it, without = (True, 2, 64), (False, 1, 32)
    assert steps == [with_it, with_it, without, without, with_it, without]
    for loss in (Hinge(), losses.Quantile(0.9), losses.EpsilonInsensitive()):
        model = (KernelClassifier if isinstance(loss, Hinge) else KernelRegressor)(loss=loss)
        assert not machine_of(model).updates.preconditioned
    assert machine_of(KernelClassifier(growth=CDSG(), max_features=63)).expansion.block_size == 32
    assert machine_of(KernelClassifier(max_features=None, block_size=7)).expansion.block_size == 7
