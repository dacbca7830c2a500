"""The head of the benchmark of growth: which blocks join, and what they know then."""

import numpy as np
import pytest

from benchmarks.growing_head import F, GrowingHead, Metric

N = 200


def head(n_blocks, most, amplitude=0.125):
    return GrowingHead(Metric(0, np.ones(2), 1.0), 1, n_blocks, most, N, amplitude, 0.0)


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(2 * N, 2)).astype(np.float32)


def test_a_block_that_pays_joins_with_what_it_knows(X):
    y = np.sin(2 * X[:, 0].astype(float))
    growing = head(0, 1, amplitude=1.0)
    assert not growing.advance(X[:N], y[:N]).any()
    assert len(growing.blocks) == 1
    assert np.abs(growing.advance(X[N:], y[N:]) - y[N:]).mean() < 0.1 * np.abs(y).mean()


def test_a_head_that_stands_beside_one_that_grows_learns_the_same_until_a_block_joins(X):
    y = X[:, 0] * X[:, 1].astype(float)
    growing, alone = head(1, 2), head(1, 1)
    np.testing.assert_array_equal(growing.advance(X[:N], y[:N]), alone.advance(X[:N], y[:N]))
    assert growing.n_numbers == alone.n_numbers + N * (2 * F) ** 2
