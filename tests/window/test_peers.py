"""The solvers that the window benchmark compares with: each beside a plain twin, and each at its optimum or plateau."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks.solvers.control_variate import SCV
from benchmarks.solvers.corrected import AnchoredSteps, VarianceReducedSteps
from benchmarks.solvers.curve import LossCurve, follow, look_times
from benchmarks.solvers.data import factorized
from benchmarks.solvers.dual_ascent import SDCA
from benchmarks.solvers.gradient import SGD, StratifiedSGD, clustered
from benchmarks.solvers.optimum import optimum
from benchmarks.solvers.saga import saga
from benchmarks.solvers.task import Task, derivative, loss_values
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


def plain_draws(seed, n, count):
    """What `draw_row` draws, in Python's whole numbers."""
    state, found = seed, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        found.append((int(naive.mix64(state)) >> 32) * n >> 32)
    return found


def prox(task, x, gradient, step):
    return task.regularizer.prox(x - step * gradient, step)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_objective_follow_from_each_other(loss, tasks):
    z, e = np.linspace(-3, 3, 50), 1e-6
    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    slope = (loss_values(loss, z + e, y) - loss_values(loss, z - e, y)) / (2 * e)
    np.testing.assert_allclose(derivative(loss, z, y), slope, atol=1e-6)
    task, x = tasks[loss], np.random.default_rng(0).normal(size=12)
    steps = [(task.objective(x + e * d) - task.objective(x - e * d)) / (2 * e) for d in np.eye(12)]
    np.testing.assert_allclose(task.gradient(x) + task.l2 * x + task.l1 * np.sign(x), steps, atol=1e-6)
    assert task.gap(x) == pytest.approx(task.gap(x, task.slopes(x)))
    assert task.gap(x) > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_has_no_gap_and_nothing_near_is_lower(loss, tasks):
    task = tasks[loss]
    best = optimum(task)
    assert best.gap <= 1e-14
    rng = np.random.default_rng(0)
    assert all(task.objective(best.x + 1e-3 * rng.normal(size=12)) > best.objective for _ in range(20))
    # What is 0 is exactly 0.
    assert 0 < (best.x == 0).sum() < 12


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


def test_sgd_is_the_proximal_step_of_a_mini_batch(weighted):
    peer, x = SGD(weighted, 0.3, batch=4, seed=9), np.zeros(5)
    peer.advance(6)
    for rows in np.reshape(plain_draws(9, weighted.n, 24), (6, 4)):
        x = prox(weighted, x, (weighted.w * weighted.slopes(x))[rows] @ weighted.A[rows] / 4, 0.3)
    np.testing.assert_allclose(peer.x, x, atol=1e-12)
    assert peer.records == 24


def test_stratified_sgd_takes_a_record_of_each_stratum(weighted):
    strata = clustered(weighted.A, 3)
    sizes = np.bincount(strata)
    assert len(sizes) == 3
    assert sizes.min() > 20
    peer, x = StratifiedSGD(weighted, 0.3, strata, seed=9), np.zeros(5)
    peer.advance(6)
    state = 9
    for _ in range(6):
        gradient, slopes = np.zeros(5), weighted.w * weighted.slopes(x)
        for s in range(3):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            i = np.flatnonzero(strata == s)[(int(naive.mix64(state)) >> 32) * int(sizes[s]) >> 32]
            gradient += slopes[i] * weighted.A[i] * sizes[s] / weighted.n
        x = prox(weighted, x, gradient, 0.3)
    np.testing.assert_allclose(peer.x, x, atol=1e-12)


def test_scv_is_the_mini_batch_corrected_by_the_expansion_round_class_means(weighted):
    peer, x = SCV(weighted, 0.3, batch=4, seed=9), np.zeros(5)
    peer.advance(6)
    A, y, w = weighted.A, weighted.y, weighted.w
    covariance = variance = 0.0
    for number, rows in enumerate(np.reshape(plain_draws(9, weighted.n, 24), (6, 4))):
        expanded = np.zeros(weighted.n)
        for label in (-1.0, 1.0):
            own = y == label
            z = A[own].mean(axis=0) @ x
            share = 1 / (1 + np.exp(label * z))
            expanded[own] = -label * share + share * (1 - share) * (A[own] @ x - z)
        expanded *= w
        slopes = w * weighted.slopes(x)
        expected = A.T @ expanded / weighted.n
        gradient, control = slopes[rows] @ A[rows] / 4, expanded[rows] @ A[rows] / 4
        factor = np.clip(covariance / variance, 0, 1) if number else 1.0
        norms = (A[rows] ** 2).sum(axis=1)
        covariance += 0.01 * (np.mean(slopes[rows] * expanded[rows] * norms) - gradient @ expected - covariance)
        variance += 0.01 * (np.mean(expanded[rows] ** 2 * norms) - expected @ expected - variance)
        x = prox(weighted, x, gradient - factor * (control - expected), 0.3)
    np.testing.assert_allclose(peer.x, x, atol=1e-12)


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


def test_svrg_and_s3gd_give_the_same_however_they_are_cut(weighted):
    for make in (VarianceReducedSteps, AnchoredSteps):
        whole, cut = make(weighted, 0.2), make(weighted, 0.2)
        whole.advance(120)
        for count in (20, 60, 40):
            cut.advance(count)
        np.testing.assert_array_equal(whole.x, cut.x)
        assert whole.records == cut.records


def test_estimates_are_exact_where_every_row_is_an_anchor(weighted):
    few = weighted.first(60)
    x = np.random.default_rng(1).normal(size=5)
    known, gradient = AnchoredSteps(few, 0.1, anchors=60, neighbors=1).estimates(x)
    np.testing.assert_allclose(known, few.slopes(x), atol=1e-12)
    np.testing.assert_allclose(gradient, few.gradient(x), atol=1e-12)


def test_saga_comes_to_the_same_optimum(tasks):
    task = tasks["log"]
    best = optimum(task)
    curve = saga(task, 1, best.objective + 1e-9, seconds=5)
    assert curve.objective[-1] == pytest.approx(best.objective, abs=2e-9)
    assert curve.passes[:4] == [0, 1, 2, 3]


def test_when_a_curve_is_below(tasks):
    curve = LossCurve([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [2.0, 1.1, 1.001, 1.1, 1.0001])
    assert curve.first_below(1.0, 0.01, stays=False) == pytest.approx(1.5)
    assert 3 < curve.first_below(1.0, 0.01) < 4
    assert curve.first_below(1.0, 1e-9) == np.inf
    assert curve.first_below(1.0, 2.0) == 0
    task = tasks["log"]
    found = follow(SDCA(task), task, look_times(3 * task.n, task.n, 75, 1), until=0.0)
    assert found.passes == [0, 0.25, 0.5, 1, 2, 3]
    assert found.objective[0] == pytest.approx(np.log(2))
