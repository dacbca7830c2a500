"""Anchors against their twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import semi_stochastic as kernels
from tests import naive

seeds = st.integers(0, 2**32)
sizes = st.integers(1, 12)


def _rows(seed, *shape):
    """With zeros, which the distances leave out."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * (rng.random(shape) < 0.7)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.data())
def test_smallest(values, data):
    k = data.draw(st.integers(1, len(values)))
    places = np.full(k, -1)
    kernels.smallest(np.array(values, float), places)
    assert places.tolist() == naive.smallest(values, k).tolist()


@given(sizes, sizes, sizes, seeds, st.data())
def test_nearest(n, m, p, seed, data):
    X, points = _rows(seed, n, p), _rows(seed + 1, m, p)
    k = data.draw(st.integers(1, m))
    halves = np.square(points).sum(axis=1) / 2
    relative = np.empty(m)
    kernels.relative_distances(X[0], np.ascontiguousarray(points.T), halves, relative)
    assert np.allclose(relative, naive.relative_distances(X[0], points.T, halves))
    places, distances = np.full((n, k), -1), np.empty((n, k))
    kernels.nearest(X, points, places, distances)
    # Of points at nearly one distance either is right.
    assert np.allclose(distances, naive.nearest(X, points, k)[1])
    assert np.allclose(distances, np.square(X[:, None] - points[places]).sum(axis=2))
    assert all(len(set(row)) == k for row in places.tolist())


@given(sizes, sizes, sizes, seeds)
def test_centers(n, m, p, seed):
    X, centers = _rows(seed, n, p), _rows(seed + 1, m, p)
    places = np.random.default_rng(seed).integers(0, m, size=(n, 1))
    expected = naive.move_centers(X, places, centers)
    kernels.move_centers(X, places, centers)
    assert np.allclose(centers, expected)


@given(sizes, sizes, sizes, seeds)
def test_claim_rows(m, more, p, seed):
    X, points = _rows(seed, m + more, p), _rows(seed + 1, m, p)
    places = np.full(m, -1)
    kernels.claim_rows(X, points, places)
    assert places.tolist() == naive.claim_rows(X, points).tolist()
    assert len(set(places.tolist())) == m


@given(sizes, sizes, st.sampled_from([1e-9, 1e-3, 1.0, 100.0, 1e6]), seeds)
def test_anchor_weights(n, k, scale, seed):
    distances = np.sort(np.random.default_rng(seed).random((n, k)), axis=1)
    distances[0] = 0.0
    weights = np.empty((n, k))
    kernels.anchor_weights(distances, scale, weights)
    assert np.allclose(weights, naive.anchor_weights(distances, scale))
    assert np.allclose(weights.sum(axis=1), 1)
    assert np.allclose(weights[0], 1 / k)


@given(sizes, sizes, sizes, sizes, seeds)
def test_add_to_anchors(n, m, p, k, seed):
    rng = np.random.default_rng(seed)
    X, factors, shares = _rows(seed, n, p), rng.normal(size=n), rng.random((n, k))
    places, sums = rng.integers(0, m, size=(n, k)), rng.normal(size=(m, p))
    expected = naive.add_to_anchors(X, factors, places, shares, sums)
    kernels.add_to_anchors(X, factors, places, shares, sums)
    assert np.allclose(sums, expected)
