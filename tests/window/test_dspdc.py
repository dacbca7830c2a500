"""DSPDC against other solvers' optima, its rate against Theorem 2, and what it refuses."""

import numpy as np
import pytest
from scipy import optimize, sparse

from streamkernel.window import DSPDC, Factorized
from streamkernel.window.coordinates import step_sizes
from streamkernel.window.dspdc import iterates_of, prepare
from streamkernel.window.linear_model import LinearProblem
from streamkernel.window.losses import LOSSES, ElasticNet
from tests import naive

FORMS = {
    "rows": {"primal": 7},
    "some rows": {"dual": 3, "primal": 4},
    "columns": {"dual": 40, "primal": 2},
    "all": {"dual": None, "primal": None},
    "SPDC": {"primal": None},
    "subsets": {"dual": 3, "primal": 4, "sampling": "subsets"},
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    A = rng.normal(size=(80, 12))
    scores = A[:, :6] @ rng.normal(size=6)
    return A, scores + rng.normal(size=80), np.where(scores + rng.normal(size=80) > 0, 1, 0)


def objective(loss, l2, l1, A, y):
    """A function of positive and negative parts of the coefficients, with its gradient: what L-BFGS-B minimizes."""
    kind, targets = LOSSES[loss].kind, y if loss == "squared" else 2.0 * y - 1

    def value(parts):
        x = parts[: A.shape[1]] - parts[A.shape[1] :]
        z = A @ x
        slopes = A.T @ naive.score_derivatives(kind, z, targets) / len(z) + l2 * x
        losses = [naive.loss_value(kind, score, target) for score, target in zip(z, targets, strict=True)]
        return np.mean(losses) + l2 / 2 * x @ x + l1 * parts.sum(), np.concatenate([slopes + l1, l1 - slopes])

    return value


@pytest.mark.parametrize("l1", [0.0, 0.1])
@pytest.mark.parametrize("loss", LOSSES)
def test_another_solvers_optimum(data, loss, l1):
    A, numbers, labels = data
    y = numbers if loss == "squared" else labels
    value = objective(loss, 0.05, l1, A, y)
    bounds = [(0, None)] * 24
    found = optimize.minimize(
        value, np.zeros(24), jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-16, "gtol": 1e-10}
    )
    model = DSPDC(loss, l2=0.05, l1=l1, primal=5, tol=1e-11, max_passes=3000, seed=1).fit(A, y)
    assert model.history_.gap[-1] <= 1e-11
    parts = np.concatenate([np.maximum(model.coef_, 0), np.maximum(-model.coef_, 0)])
    assert value(parts)[0] == pytest.approx(model.history_.objective[-1], abs=1e-12)
    # The gap bounds what is left of the objective, and L-BFGS-B has not found less.
    assert model.history_.objective[-1] <= found.fun + 1e-11
    np.testing.assert_allclose(model.coef_, found.x[:12] - found.x[12:], atol=1e-4)
    assert ((model.coef_ == 0).any()) == (l1 > 0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_factors_give_the_iterates_of_their_product(loss, form):
    rng = np.random.default_rng(3)
    U, V = rng.normal(size=(60, 6)), rng.normal(size=(6, 30))
    y = rng.normal(size=60) if loss == "squared" else rng.integers(0, 2, 60)
    for passes in (1, 5, 40):
        plain, factorized = (
            DSPDC(loss, l2=0.01, l1=0.01, tol=0.0, max_passes=passes, seed=4, **FORMS[form]).fit(X, y)
            for X in (U @ V, Factorized(U, V))
        )
        np.testing.assert_allclose(factorized.coef_, plain.coef_, rtol=0, atol=1e-9)
        np.testing.assert_allclose(factorized.history_.gap, plain.history_.gap, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("m", "q"), [(1, 3), (4, 3), (20, 1), (5, 12)])
def test_the_gap_falls_as_fast_as_theorem_2_says(data, m, q):
    """With theta (18) and the true Lambda: the largest squared spectral norm over the parts that may be drawn."""
    A, y, _ = data
    model = DSPDC(l2=0.05, dual=m, primal=q, safe=True, tol=1e-13, max_passes=4000, seed=2)
    rows, columns = model._coordinates(A, 2)
    parts = [
        np.linalg.norm(A[np.ix_(i, j)], 2) ** 2
        for i in np.split(rows.order, rows.starts[1:-1])
        for j in np.split(columns.order, columns.starts[1:-1])
    ]
    true = max(parts)
    assert len(parts) == np.ceil(80 / m) * np.ceil(12 / q)
    problem = LinearProblem(A, y, np.ones(80), LOSSES["squared"], ElasticNet(0.05))
    iterates = iterates_of(problem, rows, columns, prepare(A, rows, columns))
    assert true <= iterates.largest_part() * (1 + 1e-12)
    if 1 in (m, q):
        assert iterates.largest_part() == pytest.approx(true)
    _, history = model.iterate(iterates, true, np.zeros(12))
    steps = step_sizes(80, rows.ratio, columns.ratio, true, 0.05, 1.0, bounds_gap=True)
    a_pass = np.ceil(max(rows.ratio, columns.ratio))
    assert history.gap[-1] <= 1e-13
    slope = np.polyfit(history.passes * a_pass, np.log(history.gap), 1)[0]
    assert slope <= np.log(steps.factor)


def test_lambda_is_doubled_where_the_gap_rises():
    """Of rows of which one column has nearly all, the rule of thumb takes a part of what the theorem asks for."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(60, 20)) * 1e-3
    A[:, 0] = 1.0
    y = rng.normal(size=60)
    model = DSPDC(l2=1e-2, dual=20, tol=1e-11, max_passes=1000, seed=1).fit(A, y)
    gap = model.history_.gap
    assert (gap[1:] / np.minimum.accumulate(gap)[:-1]).max() > 4
    assert gap[-1] <= 1e-11
    np.testing.assert_allclose(model.coef_, np.linalg.solve(A.T @ A / 60 + 1e-2 * np.eye(20), A.T @ y / 60), atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"primal": 13}, "primal is 13, and X has 12 columns"),
        ({"dual": 81}, "dual is 81, and X has 80 rows"),
        ({"primal": 0}, "primal must be a whole number"),
        ({"dual": 1.5}, "dual must be a whole number"),
        ({"l2": 0.0}, "l2 must be a finite number above 0"),
        ({"tol": -1}, "tol must be a number of at least 0"),
        ({"tol": float("nan")}, "tol must be a number of at least 0"),
        ({"max_passes": -1}, "max_passes must be a whole number"),
        ({"sampling": "rows"}, "sampling must be one of blocks, subsets"),
        ({"safe": 3}, "safe must be True or False"),
        ({"loss": "hinge"}, "loss must be one of"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_bad_arguments(data, arguments, message):
    model = DSPDC(**arguments)
    with pytest.raises(ValueError, match=message):
        model.fit(*data[:2])
    assert not hasattr(model, "coef_")


def test_bad_data(data):
    A, y, _ = data
    bad = A.copy()
    bad[3, 4] = np.nan
    for X in (bad, sparse.csr_matrix(bad)):
        with pytest.raises(ValueError, match="X is nan at row 3, column 4"):
            DSPDC().fit(X, y)
    with pytest.raises(ValueError, match="U is nan at row 3, column 4"):
        Factorized(bad, np.ones((12, 2)))
    with pytest.raises(ValueError, match="U has 12 columns and V 11 rows"):
        Factorized(A, np.ones((11, 2)))
    with pytest.raises(ValueError, match="at least one row"):
        DSPDC().fit(sparse.csr_matrix((0, 3)), [])
    with pytest.raises(ValueError, match="scale the columns of X"):
        DSPDC().fit(A * 1e160, y)
    with pytest.raises(ValueError, match="scale y"):
        DSPDC().fit(A, y * 1e160)
    twice = sparse.csr_matrix((np.ones(4), [0, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    assert (
        DSPDC(seed=1).fit(twice, [1.0, 2.0]).coef_.tobytes()
        == DSPDC(seed=1).fit(2 * np.eye(2), [1.0, 2.0]).coef_.tobytes()
    )
    assert twice.nnz == 4
    for X in (np.zeros((80, 12)), sparse.csr_matrix((80, 12)), Factorized(A * 0, np.ones((12, 3)))):
        assert not DSPDC(max_passes=3).fit(X, y).coef_.any()
