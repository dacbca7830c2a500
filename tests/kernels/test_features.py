"""Random features approach the exact kernel, and follow from word, keys and row alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel.expansion.expansion import Expansion
from streamkernel.kernels.drawing import compute_features
from tests.kernels.cases import CASES, ONE_OF_EACH

F = 64
SIZES = [64, 256, 1024, 4096]
SEEDS = 6


def _estimates(kernel, X, seed, dtype="float64"):
    """Phi Phi^T of each block."""
    expansion = Expansion(kernel, F, np.dtype(dtype), 0, seed)
    expansion.begin(X, 1.0)
    keys = np.random.default_rng(seed + 999).integers(0, 2**64, X.shape[1], dtype=np.uint64)
    for block in range(SIZES[-1] // F):
        phi = expansion.features(block, X.astype(dtype), keys).astype(np.float64)
        yield phi @ phi.T


@pytest.mark.parametrize("name", CASES)
def test_error_of_the_features_falls_as_one_over_the_root_of_their_number(name):
    kernel, X = CASES[name]
    K = kernel.matrix(X, X, kernel.bandwidth)
    size = np.linalg.norm(K)
    estimates = np.array([list(_estimates(kernel, X, seed)) for seed in range(SEEDS)])
    errors = []
    for m in SIZES:
        # All means of m features that the draws hold, seed by seed.
        means = estimates.reshape(SEEDS, -1, m // F, *K.shape).mean(axis=2)
        errors.append(math.sqrt(np.mean(np.sum((means - K) ** 2, axis=(2, 3)))) / size)
    slope = np.polyfit(np.log(SIZES), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)
    # A bias would show in the mean of all.
    blocks = estimates.reshape(-1, *K.shape)
    spread = math.sqrt(np.sum(blocks.var(axis=0)) / len(blocks))
    assert np.linalg.norm(blocks.mean(axis=0) - K) < 2 * spread
    assert np.linalg.norm(blocks.mean(axis=0) - K) / size < 0.1


@pytest.mark.parametrize("name", CASES)
def test_what_a_kernel_states_of_itself(name):
    kernel, X = CASES[name]
    K = kernel.matrix(X, X, kernel.bandwidth)
    assert K.dtype == np.float64
    assert np.allclose(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.linalg.norm(K)
    if kernel.kappa is not None:
        assert np.diag(K).max() <= kernel.kappa * (1 + 1e-12)
    phi = next(_features(kernel, X, [1, 2], np.float64))
    if kernel.feature_bound is not None:
        squares = np.square(phi).reshape(len(X), kernel.n_parts, -1).sum(axis=1)
        assert squares.max() <= kernel.feature_bound * (1 + 1e-12)
    moved = kernel.matrix(X + 0.75, X + 0.75, kernel.bandwidth)
    assert np.allclose(moved, K) == kernel.shift_invariant


def _features(kernel, X, seeds, dtype, n=2, keys=None):
    """Features by the words of each seed: n blocks of 8."""
    for seed in seeds:
        words = np.random.default_rng(seed).integers(0, 2**64, (n, 8), dtype=np.uint64)
        yield _of_words(kernel, X.astype(dtype), words, keys)


def _of_words(kernel, X, words, keys=None):
    keys = np.arange(1, X.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) if keys is None else keys
    out = np.full((len(X), kernel.n_parts * words.size), np.nan, X.dtype)
    compute_features(kernel, X, words if kernel.by_block else words.reshape(-1), keys, kernel.bandwidth, out)
    assert np.isfinite(out).all()
    return out


@settings(max_examples=10)
@given(st.sampled_from(list(CASES)), st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]), st.data())
def test_a_feature_follows_from_its_word_its_keys_and_its_row(name, seed, dtype, data):
    kernel, X = CASES[name]
    X = X.astype(dtype)
    words = np.random.default_rng(seed).integers(0, 2**64, (3, 8), dtype=np.uint64)
    phi = _of_words(kernel, X, words)
    assert _of_words(kernel, X, words).tobytes() == phi.tobytes()
    # One row alone.
    row = data.draw(st.integers(0, len(X) - 1))
    assert _of_words(kernel, X[row : row + 1], words).tobytes() == phi[row].tobytes()
    # One block alone, or in another place.
    block = data.draw(st.integers(0, 2))
    alone = _of_words(kernel, X, words[block : block + 1]).reshape(len(X), kernel.n_parts, 8)
    assert np.array_equal(alone, phi.reshape(len(X), kernel.n_parts, 3, 8)[:, :, block])
    # Inputs that are absent, wherever their columns are: their sums may be formed in another order, but for a 0.
    keys = np.arange(1, 5, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    wider = np.zeros((len(X), 7), dtype)
    places = sorted(data.draw(st.permutations(range(7)))[:4])
    wider[:, places] = X
    wider_keys = np.random.default_rng(seed + 1).integers(0, 2**64, 7, dtype=np.uint64)
    wider_keys[places] = keys
    assert np.array_equal(_of_words(kernel, wider, words, wider_keys), phi)


@settings(max_examples=10)
@given(st.sampled_from(list(CASES)), st.floats(-1e15, 1e15), st.sampled_from([np.float32, np.float64]))
def test_features_and_matrix_of_any_allowed_number_are_finite(name, value, dtype):
    kernel, X = CASES[name]
    X = X.astype(dtype)
    X[0, 0] = value
    domain = kernel.domain
    if domain is not None and domain.outside(X).any():
        X = np.abs(X)
    _of_words(kernel, X, np.arange(16, dtype=np.uint64).reshape(2, 8))
    assert np.isfinite(kernel.matrix(X, X, kernel.bandwidth)).all()


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_scores_are_the_products_of_features_and_coefficients_however_many_rows_there_are(name):
    kernel, X = CASES[name]
    expansion = Expansion(kernel, 24, np.dtype("float32"), 0, 1)
    expansion.begin(X, 1.0)
    keys = np.arange(4, dtype=np.uint64) + np.uint64(1)
    X = X.astype(np.float32)
    rng = np.random.default_rng(2)
    expansion.widen(2)
    total = np.zeros((len(X), 2))
    for block in range(30):
        delta = rng.normal(size=(2, expansion.width))
        expansion.add(block, delta)
        total += expansion.features(block, X, keys) @ delta.T
    none = np.zeros(0, np.uint64)
    scores = expansion.scores(X, keys, none)
    assert scores == pytest.approx(total, rel=1e-3, abs=1e-3 * np.abs(total).max())
    assert np.concatenate([expansion.scores(x[None], keys, none) for x in X]).tobytes() == scores.tobytes()
    assert expansion.scores(X, keys, none, alone=True) == pytest.approx(scores, rel=1e-3, abs=1e-3)
    # Some of the inputs are met in these rows only.
    assert expansion.scores(X, keys[:2], keys[2:]).tobytes() == scores.tobytes()
    other = Expansion(kernel, 24, np.dtype("float32"), 2**20, 5)
    other.load_state(expansion.state())
    assert other.scores(X, keys, none).tobytes() == scores.tobytes()
