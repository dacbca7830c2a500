"""The machine at batch 1 and block 1 is the papers' algorithm, number for number."""

import numpy as np
import pytest
from river.optim.schedulers import InverseScaling

from streamkernel import KernelClassifier, KernelRegressor, losses
from streamkernel.estimators.base import machine_of
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian
from tests.growth import naive
from tests.growth.naive import context

THETA, NU, N = 1.3, 0.9, 60


def _stream():
    rng = np.random.default_rng(5)
    xs = rng.normal(size=(N, 3))
    return xs, (np.sin(2 * xs[:, 0]) + 0.3 * rng.normal(size=N) > 0)


def _literal(growth, loss=None):
    return KernelClassifier(
        kernel=Gaussian(1.1),
        loss=loss or losses.Log(),
        growth=growth,
        block_size=1,
        batch_size=1,
        max_features=None,
        step=InverseScaling(THETA, power=1),
        regularization=NU,
        standardize=False,
        dtype="float64",
        seed=3,
    )


def _scores(model, xs, ys):
    records = [dict(zip("abc", x, strict=True)) for x in xs.tolist()]
    return machine_of(model).advance(records, ys.tolist()).predictions[:, 0]


def _columns(model, xs):
    """The rows in the machine's order of columns."""
    return xs[:, ["abc".index(name) for name in model.input_names]]


def _derivative(y, f):
    sign = 1 if y else -1
    return -sign / (1 + np.exp(sign * f))


def test_dsg_is_algorithm_1():
    xs, ys = _stream()
    model = _literal(DSG())
    scores = _scores(model, xs, ys)
    expected = naive.algorithm_1(
        _columns(model, xs), ys, lambda k: naive.frequencies(machine_of(model), k), THETA, NU, _derivative
    )
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)
    assert model.n_grown == N
    assert np.abs(scores).max() > 0.1


@pytest.mark.parametrize(("grow", "reuse"), [(1, 1), (2, 3)])
def test_udsg_is_its_reference(grow, reuse):
    xs, ys = _stream()
    model = _literal(UDSG(grow, reuse))
    scores = _scores(model, xs, ys)

    def pick(t, n):
        return context(t=t, n_blocks=n, seed=3).uniform_block()

    expected = naive.udsg(
        _columns(model, xs),
        ys,
        lambda k: naive.frequencies(machine_of(model), k),
        THETA,
        NU,
        _derivative,
        grow,
        reuse,
        pick,
    )
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)
    assert model.n_reused == N * reuse // (grow + reuse)


@pytest.mark.parametrize("cap", [1.0, 2.0])
def test_cdsg_is_its_reference(cap):
    xs, ys = _stream()
    model = _literal(CDSG(cap))
    scores = _scores(model, xs, ys)
    expected, reused = naive.cdsg(
        _columns(model, xs), ys, lambda k: naive.frequencies(machine_of(model), k), THETA, NU, _derivative, cap, 1 / 4
    )
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)
    assert model.n_reused == reused
    assert reused > 0


def test_the_scale_is_folded_where_gamma_nu_is_1():
    xs, ys = _stream()
    model = _literal(DSG()).clone({"regularization": 1 / THETA})
    scores = _scores(model, xs, ys)
    expected = naive.algorithm_1(
        _columns(model, xs), ys, lambda k: naive.frequencies(machine_of(model), k), THETA, 1 / THETA, _derivative
    )
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)
    assert np.isfinite(scores).all()


def test_default_step_size():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(32, 4))
    model = KernelRegressor(kernel=Gaussian(1.5), standardize=False, precondition=False, seed=1)
    for x, y in zip(X, rng.normal(size=32), strict=True):
        model.learn_one(dict(enumerate(x.tolist())), y)
    K = Gaussian().matrix(X.astype(np.float32), X.astype(np.float32), 1.5)
    lambda_1 = np.linalg.eigvalsh(K / 32).max()
    assert model.gamma_0 == pytest.approx(1 / (2 * (lambda_1 + 1 / 32 + 1 / 32)), rel=1e-5)
