"""The solvers that the window benchmark compares with: each beside a plain twin, and each at its optimum or plateau."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks.solvers.control_variate import SCV
from benchmarks.solvers.corrected import AnchoredSteps, VarianceReducedSteps
from benchmarks.solvers.data import factorized
from benchmarks.solvers.dual_ascent import SDCA
from benchmarks.solvers.gradient import SGD, StratifiedSGD, clustered
from benchmarks.solvers.optimum import optimum
from benchmarks.solvers.task import Task
from tests import naive

LOSSES = ("smooth_hinge", "log")


@pytest.fixture(scope="module")
def tasks():
    """By loss, 300 records of 12 inputs that are products of 4; a third of the weights are larger."""
    return {loss: factorized((300, 12, 6, 4), (1e-2, 5e-2), loss) for loss in LOSSES}


@pytest.fixture(scope="module")
def weighted():
    """Records in three clusters, whose labels weigh differently."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(400, 5)) * 0.4 + rng.normal(size=(3, 5))[rng.integers(3, size=400)]
    y = np.where(A @ [1.0, -1.0, 0.5, 0.0, 0.2] + 0.3 * rng.normal(size=400) > 0.6, 1.0, -1.0)
    share = np.mean(y > 0)
    return Task("three clusters", A, y, "log", 1e-2, weights=np.where(y > 0, 0.5 / share, 0.5 / (1 - share)))


def prox(task, x, gradient, step):
    return task.regularizer.prox(x - step * gradient, step)


@pytest.mark.parametrize("form", ["rows", "factors", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_sdca_is_the_best_dual_variable_record_after_record_and_comes_to_the_optimum(loss, form, tasks):
    task = tasks[loss]
    peer = SDCA(task, factors=form == "factors", seed=5)
    if form == "sparse":
        A = task.A * (np.random.default_rng(0).random(task.A.shape) < 0.2)
        task = Task("sparse", A, task.y, loss, task.l2, task.l1)
        assert sparse.issparse(task.rows)
        peer = SDCA(task, seed=5)
    peer.advance(40)
    order = list(range(task.n))
    for i, j in zip(range(task.n - 1, 0, -1), plain_shuffle(5, task.n), strict=True):
        order[i], order[j] = order[j], order[i]
    beta, kind = np.zeros(task.n), task.phi.kind
    for i in order[:40]:
        x = plain_coefficients(task, beta)
        step = task.n * task.l2 / max(task.A[i] @ task.A[i], 1e-12)
        beta[i] = naive.dual_update(kind, beta[i], float(task.A[i] @ x), task.y[i], step)
    np.testing.assert_allclose(peer.dual, beta, atol=1e-12)
    np.testing.assert_allclose(peer.x, plain_coefficients(task, beta), atol=1e-12)
    peer.advance(200 * task.n)
    best = optimum(task)
    assert peer.records == 40 + 200 * task.n
    assert task.objective(peer.x) - best.objective < 1e-9
    assert task.gap(peer.x, peer.dual) < 1e-8


def plain_shuffle(seed, n):
    """The places that Fisher and Yates swap with."""
    state = seed
    for i in range(n - 1, 0, -1):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        yield (int(naive.mix64(state)) >> 32) * (i + 1) >> 32


def plain_coefficients(task, beta):
    s = -task.A.T @ beta / task.n
    return np.sign(s) * np.maximum(np.abs(s) - task.l1, 0.0) / task.l2


def test_stochastic_gradients_end_near_the_optimum_and_svrg_at_it(weighted):
    best, strata = optimum(weighted), clustered(weighted.A, 3)
    makes = [
        SGD(weighted, 0.05),
        StratifiedSGD(weighted, 0.05, strata),
        SCV(weighted, 0.05),
        AnchoredSteps(weighted, 0.05, anchors=50),
    ]
    for peer in makes:
        peer.advance(6_000)
        assert weighted.objective(peer.x) < 1.01 * best.objective, type(peer).__name__
    exact = VarianceReducedSteps(weighted, 0.3)
    exact.advance(6_000)
    assert weighted.objective(exact.x) - best.objective < 1e-12
    assert exact.records == 6_000 * 10 + 6_000 // 50 * weighted.n
