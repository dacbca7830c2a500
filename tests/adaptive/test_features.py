"""The columns: where each stands, and that none moves when inputs arrive."""

import math

import numpy as np
import pytest

from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.compute.features import adaptive_columns
from streamkernel.kernels import Gaussian
from tests import naive

NO_KEYS = np.zeros(0, np.uint64)
KEYS = np.array([2**63 + 5, 17, 3, 2**40, 99, 1234], np.uint64)
F = 8


def _columns(d, n_features=F, seed=5, kernel=None):
    columns = AdaptiveFeatures(kernel or Gaussian(), n_features, seed)
    columns.begin(d)
    return columns


def _rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def _of_all(columns, X, keys, extra_keys):
    """AdaptiveFeatures of rows that have the inputs of `extra_keys`, too, which have no place."""
    feature_map, out = columns.feature_map(keys, extra_keys), np.empty((len(X), columns.n_columns))
    adaptive_columns(
        X, feature_map.W, feature_map.scales, feature_map.root, feature_map.n_linear, feature_map.sine, out
    )
    return out


def test_features_then_the_constant_then_the_inputs():
    columns, X = _columns(3), _rows(6, 3)
    Phi = columns.of(X, KEYS[:3])
    assert Phi.shape == (6, columns.n_columns) == (6, 2 * F + 1 + 3)
    assert Phi.dtype == np.float64
    W = naive.gaussians(
        naive.feature_words(5, 0, F), [int(key) for key in KEYS[:3]], 1 / (2 * math.pi * columns.bandwidth), np.float32
    )
    assert np.allclose(Phi[:, : 2 * F], naive.paired_features(X, W, 0, F), atol=1e-6)
    assert (Phi[:, 2 * F] == 1).all()
    assert np.allclose(Phi[:, 2 * F + 1 :], X / math.sqrt(3), atol=1e-7)


def test_the_features_are_the_kernel_under_the_metric():
    columns, X = _columns(3, n_features=4_000), _rows(5, 3)
    columns.set_metric(np.array([0.2, 1.0, 1.4]), 1.5)
    Phi = columns.of(X, KEYS[:3])[:, :8_000]
    scaled = X * columns.scales
    assert np.abs(Phi @ Phi.T - Gaussian().matrix(scaled, scaled, 1.5)).max() < 0.06
    # The inputs themselves are not scaled.
    assert np.allclose(columns.of(X, KEYS[:3])[:, 8_001:], X / math.sqrt(3), atol=1e-7)


@pytest.mark.parametrize("d", [1, 3, 16])
def test_the_first_bandwidth(d):
    assert _columns(d).bandwidth == pytest.approx(0.7 * math.sqrt(2 * d))
    assert _columns(d, kernel=Gaussian(2.5)).bandwidth == 2.5


def test_later_inputs_come_last_and_move_nothing():
    columns, X = _columns(2), _rows(5, 4)
    before = columns.of(X[:, :2].copy(), KEYS[:2])
    bandwidth = columns.bandwidth
    assert columns.add_input()
    assert columns.add_input()
    absent = X.copy()
    absent[:, 2:] = 0
    after = columns.of(absent, KEYS[:4])
    assert columns.n_columns == after.shape[1] == before.shape[1] + 2
    assert after[:, :-2].tobytes() == before.tobytes()
    assert not after[:, -2:].any()
    # d0 and the bandwidth stay, so that what was learned keeps its meaning.
    assert (columns.d0, columns.bandwidth) == (2, bandwidth)
    assert np.allclose(columns.of(X, KEYS[:4])[:, 2 * F + 1 :], X / math.sqrt(2), atol=1e-7)


def test_inputs_met_in_these_rows_only_have_features_and_no_columns():
    columns, X = _columns(2), _rows(5, 4)
    Phi = _of_all(columns, X, KEYS[:2], KEYS[2:4])
    assert Phi.shape == (5, columns.n_columns)
    assert columns.n_inputs == 2
    known = _columns(2)
    known.add_input()
    known.add_input()
    assert np.array_equal(known.of(X, KEYS[:4])[:, : 2 * F + 3], Phi)
    # they leave no trace
    fresh = _columns(2)
    assert np.array_equal(columns.of(X[:, :2].copy(), KEYS[:2]), fresh.of(X[:, :2], KEYS[:2]))
