"""The metric: ridge coefficients, their gradient along every input, and what it says of the inputs."""

import numpy as np
import pytest

from streamkernel.adaptive import relearning as metric
from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.compute.features import slopes
from streamkernel.kernels import Gaussian

NO_KEYS = np.zeros(0, np.uint64)
RIDGE = 0.1


def _keys(d):
    return np.arange(11, 11 + d, dtype=np.uint64)


def _columns(d, F, later=0, learned=False):
    columns = AdaptiveFeatures(Gaussian(), F, seed=3)
    columns.begin(d)
    for _ in range(later):
        columns.add_input()
    if learned:
        columns.set_metric(np.linspace(0.3, 1.7, d + later), 1.9)
    return columns


def _feature_map(columns):
    return columns.feature_map(_keys(columns.n_inputs), NO_KEYS)


def _slopes(columns, X, coefficients):
    """Of every record and output, (n, K, d)."""
    feature_map, Phi = _feature_map(columns), columns.of(X, _keys(columns.n_inputs))
    out = np.empty((len(X), len(coefficients), columns.n_inputs))
    for phi, of_record in zip(Phi, out, strict=True):
        for row, slope in zip(coefficients, of_record, strict=True):
            how = (
                feature_map.W.astype(np.float64),
                feature_map.scales.astype(np.float64),
                feature_map.root,
                feature_map.n_linear,
            )
            slopes(phi, row, *how, np.empty(columns.n_features), slope)
    return out


@pytest.mark.parametrize(
    ("d", "F", "later", "learned", "n_linear"),
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
def test_the_gradient_is_that_of_finite_differences(d, F, later, learned, n_linear, K):
    columns = _columns(d, F, later, learned)
    assert columns.n_linear == n_linear
    d += later
    rng = np.random.default_rng(d)
    # On a grid, and a step of a power of 2, so that float32 adds no error of its own to the rows.
    X = (rng.integers(-64, 65, size=(7, d)) / 32).astype(np.float32)
    coefficients = rng.normal(size=(K, columns.n_columns))
    exact = _slopes(columns, X, coefficients)

    def f(j, step):
        moved = X.copy()
        moved[:, j] += np.float32(step)
        return columns.of(moved, _keys(d)) @ coefficients.T

    # Five points, whose error falls with the fourth power of a step that float32 still resolves.
    h = 2.0**-4
    for j in range(d):
        numeric = (8 * (f(j, h) - f(j, -h)) - (f(j, 2 * h) - f(j, -2 * h))) / (12 * h)
        assert np.abs(exact[:, :, j] - numeric).max() < 2e-4 * max(1.0, np.abs(exact).max())


def _importance_of(Phi, coefficients, feature_map):
    return metric.importance(metric.energy(Phi, coefficients, feature_map))


def _importance(X, y):
    """By a head that learned all of it."""
    columns = _columns(X.shape[1], 64)
    Phi = columns.of(X, _keys(X.shape[1]))
    solution = np.linalg.solve(Phi.T @ Phi + RIDGE * np.eye(Phi.shape[1]), Phi.T @ y)
    return _importance_of(Phi, np.ascontiguousarray(solution.T), _feature_map(columns))


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
