"""Compiled random features against their plain twins."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel.compute import laws, random_features
from streamkernel.compute.features import SINE
from streamkernel.kernels import Polynomial
from tests.naive import random_features as naive

SEEDS = st.integers(0, 2**32)


def _close(values, expected):
    assert np.asarray(values) == pytest.approx(np.asarray(expected), rel=1e-9, abs=1e-9)


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 4), st.integers(0, 5), st.integers(1, 7))
def test_project_waves_decays_and_logs(seed, n, d, m):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7), rng.normal(size=(d, m))
    out = np.full((n, m), np.nan)
    random_features.project(X, W, out)
    _close(out, [naive.project(x, W.tolist()) if d else [0.0] * m for x in X.tolist()])
    both = np.full((n, 2 * m), np.nan)
    random_features.waves(out, SINE[out.dtype], both)
    _close(both, [naive.waves(row) for row in out.tolist()])
    out = np.abs(out)
    fallen = out.copy()
    random_features.decays(fallen)
    _close(fallen, [naive.decays(row) for row in out.tolist()])
    logs = np.empty_like(out)
    random_features.logs(out, 0.5, logs)
    _close(logs, [naive.logs(row, 0.5) for row in out.tolist()])
    random_features.logs(np.full((1, 1), -0.5), 0.5, logs[:1, :1])
    assert logs[0, 0] == pytest.approx(naive.logs([-0.5], 0.5)[0])


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 4), st.integers(1, 5), st.integers(1, 7))
def test_homogeneous_waves(seed, n, d, m):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, d)) * (rng.random((n, d)) < 0.7)
    signs, turns = rng.choice([-1.0, 1.0], size=(d, m)), rng.normal(size=m)
    out = np.full((n, 2 * m), np.nan)
    random_features.homogeneous_waves(X, signs, turns, SINE[X.dtype], out)
    _close(out, [naive.homogeneous_waves(x, signs.tolist(), turns.tolist()) for x in X.tolist()])


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 40))
def test_add_parts(seed, n, K, P, m):
    rng = np.random.default_rng(seed)
    phi, alpha = rng.normal(size=(n, P * m)), rng.normal(size=(K, P, m + 3))
    scores = np.ones((n, K))
    random_features.add_parts(phi, alpha, 2, scores)
    _close(scores - 1, [naive.add_parts(row, alpha.tolist(), 2) for row in phi.tolist()])


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 4), st.integers(1, 5), st.integers(1, 7))
def test_sign_products(seed, n, d, m):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(n, d)), rng.gamma(1.0, size=m)
    words, keys = (rng.integers(0, 2**64, size, dtype=np.uint64) for size in (m, d))
    orders = rng.integers(0, 6, m)
    out = np.full((n, m), np.nan)
    laws.sign_products(X, words, keys, orders, weights, 1e18, out)
    lists = [part.tolist() for part in (words, keys, orders, weights)]
    _close(out, [naive.sign_products(x, *lists) for x in X.tolist()])
    laws.sign_products(1e200 * X, words, keys, orders, weights, 5.0, out)
    assert np.abs(out).max() <= 5.0


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 3), st.integers(1, 5), st.integers(1, 3), st.integers(1, 9), st.integers(1, 4))
def test_tensor_sketches(seed, n, d, blocks, F, degree):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    words, keys = (rng.integers(0, 2**64, size, dtype=np.uint64) for size in (blocks, d))
    made = np.full((n, blocks, degree, F), np.nan)
    laws.count_sketches(X, words, keys, 0.5, made)
    expected = [naive.count_sketches(x, words.tolist(), keys.tolist(), 0.5, degree, F) for x in X.tolist()]
    _close(made, expected)
    spectra = np.array([[[naive.spectrum(one) for one in of_block] for of_block in row] for row in expected])
    product = np.empty((n, blocks, spectra.shape[3]), np.complex128)
    laws.multiply_spectra(spectra, product)
    _close(product, [[naive.multiply_spectra(of_block.tolist()) for of_block in row] for row in spectra])
    out = np.full((n, blocks * F), np.nan)
    Polynomial(degree, 0.25).features(X, np.repeat(words[:, None], F, axis=1), keys, 1.0, out)
    _close(out.reshape(n, blocks, F) / math.sqrt(F), [[naive.convolved(one) for one in row] for row in expected])
