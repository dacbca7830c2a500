"""S3GD that ends as SVRG, and SVRG: they come to the optimum of another solver, the same way each time."""

import numpy as np
import pytest

from streamkernel.window import S3GD, SVRG
from tests.window.stochastic_cases import KINDS, clusters, objective, optimum

SOLVERS = [S3GD(anchors=30, max_passes=300, seed=1), SVRG(max_passes=300, seed=1)]
solvers = pytest.mark.parametrize("solver", SOLVERS, ids=["S3GD", "SVRG"])


@solvers
@pytest.mark.parametrize(("l2", "l1"), [(1e-2, 0.0), (1e-3, 1e-2), (1e-2, 1e-1)], ids=["ridge", "sparse", "elastic"])
@pytest.mark.parametrize("loss", KINDS)
def test_comes_to_the_optimum_of_another_solver(solver, loss, l2, l1):
    X, y = clusters(labels=loss != "squared")
    best = optimum(loss, X, y, l2, l1)
    model = solver.clone({"loss": loss, "l2": l2, "l1": l1, "tol": 1e-10, "beta": 3.0}).fit(X, y)
    found = objective(loss, X, y, model.coef_, l2, l1)
    assert abs(found - best) < 1e-8 * best
    history = model.history_
    assert history.objective[-1] == pytest.approx(found, rel=1e-12)
    # The gap is a bound wherever it was taken.
    taken = ~np.isnan(history.gap)
    assert np.all(history.objective[taken] - best <= history.gap[taken] + 1e-12)
    assert history.gap[-1] <= 1e-10


@solvers
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", KINDS)
def test_l1_alone_comes_to_the_optimum_of_another_solver(solver, loss, weighted):
    X, y = clusters(labels=loss != "squared")
    # A coefficient that is 0 at the optimum, and rows of weight 0.
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float) if weighted else np.ones(len(X))
    weights /= weights.mean()
    best = optimum(loss, X, y, 0.0, 0.05, weights)
    model = solver.clone({"loss": loss, "l2": 0.0, "l1": 0.05, "tol": 1e-9, "beta": 3.0}).fit(X, y, weights)
    assert abs(objective(loss, X, y, model.coef_, 0.0, 0.05, weights) - best) < 1e-7 * best
    history = model.history_
    taken = ~np.isnan(history.gap)
    assert np.all(history.objective[taken] - best <= history.gap[taken] + 1e-12)
    assert history.gap[-1] <= 1e-9


@solvers
def test_same_seed_same_bytes(solver):
    X, y = clusters()
    first, again, other = (solver.clone({"seed": seed}).fit(X, y) for seed in (1, 1, 2))
    assert first.coef_.tobytes() == again.coef_.tobytes() != other.coef_.tobytes()
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first.history_[2:], again.history_[2:], strict=True))


@solvers
def test_balanced_classes(solver):
    X, y = clusters()
    keep = np.flatnonzero((y < 0) | (np.arange(len(y)) % 7 == 0))
    X, y = X[keep], y[keep]
    share = (y > 0).mean()
    weights = np.where(y > 0, 0.5 / share, 0.5 / (1 - share))
    balanced = solver.clone({"class_weight": "balanced", "tol": 1e-10}).fit(X, y)
    given = solver.clone({"tol": 1e-10}).fit(X, y, sample_weight=weights)
    assert np.allclose(balanced.coef_, given.coef_, atol=1e-5)
    best = optimum("log", X, y, 1e-3, 0.0, weights)
    assert balanced.history_.objective[-1] == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize(
    "model", [S3GD("squared", anchors=20, switch=False, step=1e3), SVRG("squared", inner=50, step=1e3)]
)
def test_steps_that_diverge_are_refused_where_none_are_shortened(model):
    X, y = clusters(labels=False)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="diverge: use a smaller step, or scale y"):
        model.fit(X, y)
    assert vars(model) == before


BAD = [
    ({"l2": 0.0}, "l2 and l1 are both 0"),
    ({"l2": -1.0}, "l2 must be a finite number from 0 up"),
    ({"l1": -1.0}, "l1 must be a finite number from 0 up"),
    ({"loss": "hinge"}, "loss must be one of squared, log, smooth_hinge, squared_hinge, modified_log"),
    ({"batch": 0}, "batch must be a whole number of at least 1"),
    ({"step": 0.0}, "step must be a finite number above 0"),
    ({"step": np.inf}, "step must be a finite number above 0"),
    ({"max_passes": 0}, "max_passes must be a finite number above 0"),
    ({"tol": -1.0}, "tol must be a finite number from 0 up"),
    ({"beta": 0.0}, "beta must be a finite number above 0"),
    ({"class_weight": "even"}, "class_weight must be 'balanced' or None"),
    ({"class_weight": "balanced", "loss": "squared"}, "class_weight is for labels"),
    ({"inner": 0}, "inner must be a whole number of at least 1"),
    ({"seed": 0.5}, "seed must be a whole number or None"),
]


@solvers
@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=lambda value: str(value)[:30])
def test_arguments_that_cannot_be(solver, arguments, sentence):
    X, y = clusters(50)
    model = solver.clone(arguments)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)
    assert vars(model) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"anchors": 51}, "anchors must be at most the number of rows, 50, got 51: use fewer anchors"),
        ({"anchors": 0}, "anchors must be a whole number of at least 1"),
        ({"anchors": 5, "neighbors": 6}, "neighbors must be at most anchors=5, got 6"),
        ({"anchors": 5, "neighbors": 0}, "neighbors must be a whole number of at least 1"),
        ({"anchors": 5, "record_every": 0.0}, "record_every must be a finite number above 0"),
    ],
)
def test_anchors_that_cannot_be(arguments, sentence):
    X, y = clusters(50)
    model = S3GD(**arguments)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)
    assert vars(model) == before


@solvers
@pytest.mark.parametrize(
    ("value", "sentence"),
    [(np.nan, "X is nan at row 3, column 1"), (1e200, "X has values whose squares are too large")],
)
def test_rows_that_cannot_be(solver, value, sentence):
    X, y = clusters()
    X[3, 1] = value
    with pytest.raises(ValueError, match=sentence):
        solver.clone().fit(X, y)


@pytest.mark.parametrize(
    "solver", [S3GD(inner=10**15, anchors=5), S3GD(inner=10**15, anchors=5, switch=False), SVRG(inner=10**15)], ids=repr
)
def test_steps_without_end_end_with_the_passes(solver):
    X, y = clusters(50)
    model = solver.clone({"max_passes": 10, "seed": 1}).fit(X, y)
    assert model.history_.passes[-1] < 25
