"""Metric learning: its problem and its iterations, as the paper writes them."""

import numpy as np
import pytest

from benchmarks.solvers.block_solver import BlockIterates, draw
from benchmarks.solvers.metric_learning import MetricLearner
from streamkernel.compute.window_losses import SMOOTH_HINGE
from streamkernel.window.coordinates import step_sizes
from tests.naive.window_losses import dual_update, loss_value
from tests.window.test_block_solver import projected

K = 2


def records_of_tasks(seed=1, n=16, d=3, n_tasks=3):
    """Records of tasks whose labels follow from one input, and from another one of each task."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * n_tasks, d))
    tasks = np.repeat(np.arange(n_tasks), n)
    y = X[:, 0] + X[np.arange(len(X)), tasks % d] + rng.normal(size=len(X)) / 4 > 0
    return X, y.astype(int), tasks


def _problem(several=True, seed=1, **arguments):
    X, y, tasks = records_of_tasks(seed)
    learner = MetricLearner(neighbors=K, shared_l2=0.02, l2=0.1, **arguments)
    rng = np.random.default_rng(2)
    return learner.problem(X, y, tasks if several else None, rng), (X, y, tasks if several else np.zeros(len(X)))


def _objective(X, y, tasks, metrics, l2=0.1, shared_l2=0.02, pull=1.0):
    """The problem (33), pair by pair; its Z_uvw is Z_uw - Z_uv, that of the constraint in (32)."""
    names = np.unique(tasks)
    near, push = [], []
    for number, task in enumerate(names, start=1):
        M = metrics[0] + (metrics[number] if len(names) > 1 else 0)

        def squared(a, b, M=M):
            return (X[a] - X[b]) @ M @ (X[a] - X[b])

        rows = np.flatnonzero(tasks == task)
        for u in rows:
            by_distance = sorted(rows, key=lambda r, u=u: np.sum((X[r] - X[u]) ** 2))
            w = next(r for r in by_distance if y[r] != y[u])
            for v in [r for r in by_distance if y[r] == y[u] and r != u][:K]:
                near.append(squared(u, v))
                push.append(loss_value(SMOOTH_HINGE, squared(u, w) - squared(u, v), 1.0))
    own = sum(l2 / 2 * np.sum(M**2) for M in metrics[1:])
    return (
        shared_l2 / 2 * np.sum((metrics[0] - np.eye(len(metrics[0]))) ** 2) + own + pull * np.mean(near) + np.mean(push)
    )


def _random_metrics(p, d, seed):
    A = np.random.default_rng(seed).normal(size=(p, d, d)) / 3
    return A @ A.transpose(0, 2, 1)


@pytest.mark.parametrize("several", [False, True])
def test_the_objective_is_that_of_the_paper(several):
    problem, data = _problem(several)
    assert problem.data.p == (4 if several else 1)
    for seed in range(3):
        metrics = _random_metrics(problem.data.p, 3, seed)
        blocks = problem.data.pack(metrics)
        zeros = np.zeros(problem.data.n)
        objective, gap = problem.gap(blocks, problem.scores(blocks), zeros, problem.combine(zeros))
        assert objective == pytest.approx(_objective(*data, metrics), rel=1e-10)
        assert gap >= 0
    less, data = _problem(several, pull=0.25)
    objective, _ = less.gap(blocks, less.scores(blocks), zeros, less.combine(zeros))
    assert objective == pytest.approx(_objective(*data, metrics, pull=0.25), rel=1e-10)


def test_iterations_are_those_of_algorithm_3():
    problem, _ = _problem()
    data, n, p = problem.data, problem.data.n, problem.data.p
    Z = [data.unpack(data.combine(slice(i, i + 1), np.ones(1))) for i in range(n)]
    T = [next(j for j in range(1, p) if np.any(z[j])) for z in Z]
    Z = [z[0] for z in Z]
    C = data.unpack(problem.linear)
    l2 = problem.l2[:, 0]
    m, q = 6, 2
    steps = step_sizes(n, n / m, p / q, 20.0, 0.02, 1.0)
    iterates = BlockIterates(problem, m, q, problem.data.pack(np.zeros((p, 3, 3))), np.zeros(n))
    assert iterates.by_records
    X = ahead = np.zeros((p, 3, 3))
    y, W, B = np.zeros(n), np.zeros((p, 3, 3)), np.zeros((p, 3, 3))
    rng, again = np.random.default_rng(8), np.random.default_rng(8)
    for _ in range(40):
        iterates.iterate(steps, rng)
        records, blocks = np.arange(n)[draw(again, n, m)], np.arange(p)[draw(again, p, q)]
        new = y.copy()
        for i in records:  # (36)
            z = np.sum(Z[i] * (ahead[T[i]] + ahead[0]))
            new[i] = dual_update(SMOOTH_HINGE, y[i], z, 1.0, steps.sigma / n)
        before, B = B, np.zeros((p, 3, 3))
        for i in records:  # (37)
            B[T[i]] += (new[i] - y[i]) * Z[i]
        W = W + n / m * B + (m - n) / m * before  # (38)
        W[0] = W[1:].sum(axis=0)
        following, ahead = X.copy(), X.copy()
        for j in blocks:  # (39), with the linear part of g_j
            V = X[j] - steps.tau * (W[j] / n - C[j])
            following[j] = projected(V / (1 + steps.tau * l2[j]))
            ahead[j] = X[j] + (steps.theta + 1) * (following[j] - X[j])  # (40)
        X, y = following, new
        assert data.unpack(iterates.X) == pytest.approx(X, abs=1e-9)
        assert iterates.beta == pytest.approx(y, abs=1e-9)
