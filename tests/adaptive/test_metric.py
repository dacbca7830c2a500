"""The metric: ridge coefficients, their gradient along every input, and what it says of the inputs."""

import math

import numpy as np
import pytest

from streamkernel.adaptive import metric
from streamkernel.adaptive.columns import Columns
from streamkernel.kernels import Gaussian

NO_KEYS = np.zeros(0, np.uint64)


def _keys(d):
    return np.arange(11, 11 + d, dtype=np.uint64)


def _columns(d, F, later=0, learnt=False):
    columns = Columns(Gaussian(), F, seed=3)
    columns.begin(d)
    for _ in range(later):
        columns.add_input()
    if learnt:
        columns.set_metric(np.linspace(0.3, 1.7, d + later), 1.9)
    return columns


def _slopes(columns, X, coefficients):
    keys = _keys(columns.n_inputs)
    return metric.gradients(
        *(columns.of(X, keys, NO_KEYS), coefficients, columns.frequencies(keys)),
        *(columns.scales, columns.d0, columns.n_linear),
    )


@pytest.mark.parametrize(
    ("d", "F", "later", "learnt", "n_linear"),
    [
        (4, 16, 0, False, 4),
        (4, 16, 0, True, 4),
        (1, 8, 0, True, 1),
        (3, 8, 2, False, 5),  # later inputs do not change d0
        (3, 2, 2, True, 4),  # the last came when there were 2 F linear columns
        (5, 2, 1, True, 0),  # more inputs than 2 F at the beginning
    ],
)
@pytest.mark.parametrize("K", [1, 3])
def test_the_gradient_is_that_of_finite_differences(d, F, later, learnt, n_linear, K):
    columns = _columns(d, F, later, learnt)
    assert columns.n_linear == n_linear
    d += later
    rng = np.random.default_rng(d)
    # On a grid, and a step of a power of 2, so that float32 adds no error of its own to the rows.
    X = (rng.integers(-64, 65, size=(7, d)) / 32).astype(np.float32)
    coefficients = rng.normal(size=(K, columns.n_columns))
    slopes = _slopes(columns, X, coefficients)
    assert slopes.shape == (7, K, d)

    def f(j, step):
        moved = X.copy()
        moved[:, j] += np.float32(step)
        return columns.of(moved, _keys(d), NO_KEYS) @ coefficients.T

    # Five points, whose error falls with the fourth power of a step that float32 still resolves.
    h = 2.0**-4
    for j in range(d):
        numeric = (8 * (f(j, h) - f(j, -h)) - (f(j, 2 * h) - f(j, -2 * h))) / (12 * h)
        assert np.abs(slopes[:, :, j] - numeric).max() < 2e-4 * max(1.0, np.abs(slopes).max())


def test_a_single_linear_column_has_its_coefficient_for_a_slope():
    columns = _columns(4, 8)
    coefficients = np.zeros((1, columns.n_columns))
    coefficients[0, -2] = 3.0
    slopes = _slopes(columns, np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32), coefficients)
    assert np.allclose(slopes, [0, 0, 3 / math.sqrt(4), 0])


@pytest.mark.parametrize("n", [5, 60])
def test_fit_ridge_is_least_squares_with_the_ridge_as_more_records(n):
    rng = np.random.default_rng(n)
    Phi, targets, weights = rng.normal(size=(n, 12)), rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    roots = np.sqrt(weights)[:, None]
    stacked = np.concatenate([Phi * roots, np.eye(12) * math.sqrt(0.3)])
    solution = np.linalg.lstsq(stacked, np.concatenate([targets * roots, np.zeros((12, 2))]), rcond=None)[0]
    assert np.abs(metric.fit_ridge(Phi, targets, weights, 0.3) - solution.T).max() < 1e-10


def _importance(X, y):
    columns = _columns(X.shape[1], 64)
    Phi = columns.of(X, _keys(X.shape[1]), NO_KEYS)
    return metric.importance(_slopes(columns, X, metric.fit_ridge(Phi, y, np.ones(len(X)), 0.1)))


def test_importance_finds_the_two_inputs_of_ten_that_matter():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 10)).astype(np.float32)
    numbers = (np.sin(2 * X[:, 3]) + X[:, 7] ** 2 / 2)[:, None]
    labels = np.eye(2)[(X[:, 3] * X[:, 7] > 0).astype(int)] - 0.5
    for y in (numbers, labels):
        important = _importance(X, y)
        assert set(np.argsort(important)[-2:]) == {3, 7}
        assert important[[3, 7]].min() > 2 * np.delete(important, [3, 7]).max()
        scales = metric.scales_of(important)
        assert np.mean(scales**2) == pytest.approx(1)
        assert set(np.argsort(scales)[-2:]) == {3, 7}


def test_importance_is_in_units_of_the_mean_and_never_nothing():
    slopes = np.zeros((4, 2, 3))
    slopes[:, :, 0] = 2.0
    slopes[:, 1, 1] = [1, -1, 1, -1]
    energy = np.array([4.0, 0.5, 0.0])
    assert np.allclose(metric.importance(slopes), np.maximum(energy / energy.mean(), metric.LEAST))
    assert metric.importance(slopes)[2] == metric.LEAST == 1e-3


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_slopes_that_say_nothing_leave_the_inputs_alike(value):
    assert metric.importance(np.full((5, 1, 3), value)).tolist() == [1.0, 1.0, 1.0]


def test_no_inputs():
    assert metric.importance(np.zeros((5, 1, 0))).shape == (0,)
    assert metric.scales_of(np.ones(0)).shape == (0,)
