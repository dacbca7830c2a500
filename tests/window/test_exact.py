"""Normal equations: the solution of the square, the optimum of the other losses, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import minimize

from streamkernel.window import Exact
from streamkernel.window.losses import LOSSES
from tests.naive import loss_derivative, loss_value


def data(n=300, p=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.linspace(0.2, 2, p)
    return X, X @ rng.normal(size=p) + 0.3 * rng.normal(size=n), rng


def test_the_square_has_the_solution_of_the_normal_equations():
    X, y, rng = data()
    w = rng.choice([0.0, 1.0, 2.5], len(y))
    w_mean_1 = w / w.mean()
    model = Exact(l2=1e-2).fit(X, y, sample_weight=w)
    n, p = X.shape
    expected = np.linalg.solve(X.T @ (X * w_mean_1[:, None]) / n + 1e-2 * np.eye(p), X.T @ (w_mean_1 * y) / n)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-12, atol=1e-13)
    assert model.n_iter_ == 1
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=1e-12)
    # Wherever it begins.
    other = Exact(l2=1e-2).fit(X, y, sample_weight=w, coef_init=np.full(p, 9.0))
    np.testing.assert_allclose(other.coef_, expected, rtol=1e-10, atol=1e-12)


def test_weights_count_as_repeated_rows():
    X, y, rng = data(60, 4)
    times = rng.integers(0, 4, len(y))
    repeated = Exact(l2=1e-2).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    weighted = Exact(l2=1e-2).fit(X, y, sample_weight=times)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-10)


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.of_labels])
def test_other_losses_come_to_the_optimum_of_another_solver(loss):
    X, y, _ = data(200, 5)
    labels, l2 = np.where(y > 0.3, 1.0, -1.0), 1e-1
    kind = LOSSES[loss].kind

    def objective(x):
        z = X @ x
        value = np.mean([loss_value(kind, a, b) for a, b in zip(z, labels, strict=True)]) + l2 / 2 * x @ x
        slopes = [loss_derivative(kind, a, b) for a, b in zip(z, labels, strict=True)]
        return value, X.T @ slopes / len(z) + l2 * x

    best = minimize(objective, np.zeros(5), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    model = Exact(loss, l2, tol=1e-9, max_passes=500).fit(X, np.where(labels > 0, "yes", "no"))
    assert objective(model.coef_)[0] - best.fun < 1e-11
    np.testing.assert_allclose(model.coef_, best.x, atol=1e-5)
    assert model.history_.objective[-1] == pytest.approx(best.fun, abs=1e-11)
    assert set(model.predict(X)) == {"yes", "no"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"l2": 0.0}, "l2 must be a finite number above 0"),
        ({"l2": np.nan}, "l2 must be a finite number above 0"),
        ({"tol": 0.0}, "tol must be a number between 0 and 1"),
        ({"max_passes": 0}, "max_passes must be a whole number of at least 1"),
        ({"loss": "hinge"}, "loss must be one of squared, log, smooth_hinge, squared_hinge"),
    ],
)
def test_arguments_are_refused_by_name(given, sentence):
    X, y, _ = data(30, 3)
    with pytest.raises(ValueError, match=sentence):
        Exact(**given).fit(X, y)


def test_a_singular_window_is_refused_by_a_sentence_and_nothing_is_changed():
    X, y, _ = data(30, 3)
    model = Exact(l2=1e-3).fit(X, y)
    before = model.coef_.copy()
    model.l2 = 1e-300
    with pytest.raises(ValueError, match=r"the normal equations of these 30 rows and 4 columns are singular .* l2"):
        model.fit(np.column_stack([X, X[:, 0]]), y)
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="X is nan at row 2, column 1"):
        model.fit(np.where(np.arange(90).reshape(30, 3) == 7, np.nan, X), y)
