"""Recursive least squares and Newton steps on half a matrix, against the twins that invert whole ones."""

import numpy as np
import pytest

from streamkernel.compute import recursive as kernels
from streamkernel.compute.packed import RANK, pack, packed_size, padded, unpack
from tests import naive

SIZES = [1, 2, 3, 4, 7, 8, 17, 22]


def _positive(rng, D):
    """A covariance, its upper triangle nonsense: nobody may read it."""
    factor = rng.normal(size=(D, D + 3))
    P = factor @ factor.T / D
    P[np.triu_indices(D, 1)] = np.nan
    return P


def _assert_lower(P, whole, tolerance=1e-10):
    assert np.allclose(np.tril(P), np.tril(whole), atol=tolerance, rtol=tolerance)
    above = np.triu_indices(len(P), 1)
    assert np.isnan(P[above]).all()


def test_subtract():
    row, v = np.random.default_rng(0).normal(size=(2, 9))
    row = row[:5].copy()
    expected = naive._subtract(row, -1.3, v)
    kernels._subtract(row, -1.3, v)
    assert np.allclose(row, expected, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 7, 64, 267])
def test_dot(n):
    a, b = np.random.default_rng(n).normal(size=(2, n))
    assert kernels.dot(a, b) == pytest.approx(naive.dot(a, b), abs=1e-12)


@pytest.mark.parametrize("D", SIZES)
def test_symmetric_product_of_what_is_owed_nothing(D):
    rng = np.random.default_rng(D)
    P, x, v = _positive(rng, D), rng.normal(size=D), np.full(D, np.nan)
    before = P.copy()
    kernels.symmetric_product(P, None, 0.0, x, v)
    assert np.allclose(v, naive.symmetric_product(np.tril(P), None, 0.0, x)[1], atol=1e-12)
    assert P.tobytes() == before.tobytes()
    again = np.full(D, np.nan)
    kernels.symmetric_product(P, np.zeros(D + 2), np.inf, x, again)
    assert np.allclose(again, v, atol=1e-12)
    assert P.tobytes() == before.tobytes()


def _deferred(rng, D, drift):
    return np.array([*rng.normal(size=D), 0.03, drift])


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize(("drift", "largest"), [(0.0, 1e9), (0.1, 1e9), (0.5, 1.2)])
def test_symmetric_product_takes_what_is_owed(D, drift, largest):
    rng = np.random.default_rng(D)
    P, x, v, deferred = _positive(rng, D), rng.normal(size=D), np.full(D, np.nan), _deferred(rng, D, drift)
    expected, product = naive.symmetric_product(np.tril(P), deferred, largest, x)
    kernels.symmetric_product(P, deferred, largest, x, v)
    _assert_lower(P, expected, 1e-13)
    assert np.allclose(v, product, atol=1e-12)
    assert np.diag(P).max() <= largest


@pytest.mark.parametrize("D", [*SIZES, 61, 267])
def test_settled_before_or_by_the_next_record_are_the_same_bits(D):
    rng = np.random.default_rng(D)
    P, x, deferred = _positive(rng, D), rng.normal(size=D), _deferred(rng, D, 0.1)
    settled, later, products = P.copy(), P.copy(), np.full((2, D), np.nan)
    nothing = deferred.copy()
    kernels.apply_deferred(settled, nothing, 1.2)
    _assert_lower(settled, naive.apply_deferred(np.tril(P), deferred, 1.2), 1e-13)
    assert not nothing.any()
    for matrix, debt, product in zip((settled, later), (nothing, deferred), products, strict=True):
        kernels.symmetric_product(matrix, debt, 1.2, x, product)
    assert settled.tobytes() == later.tobytes()
    assert products[0].tobytes() == products[1].tobytes()


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_downdate(D, scale):
    rng = np.random.default_rng(D)
    P, v = _positive(rng, D), rng.normal(size=D)
    expected = naive.downdate(np.tril(P), v, 0.3, scale)
    kernels.downdate(P, v, 0.3, scale)
    _assert_lower(P, expected, 1e-13)


@pytest.mark.parametrize("K", [1, 12])
def test_absorb(K):
    rng = np.random.default_rng(K)
    W, phi, errors, v = rng.normal(size=(K, 9)), rng.normal(size=9), rng.normal(size=K), rng.normal(size=9)
    weight = 1 / (1 + abs(phi @ v))  # so that the gain is one of a positive matrix
    expected, gain = naive._absorb(W, phi, errors, weight, v)
    assert kernels._absorb(W, phi, errors, weight, v) == pytest.approx(gain)
    assert np.allclose(W, expected, atol=1e-13)


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize(
    ("K", "weight", "drift", "largest"), [(12, 1.0, 0.0, 1e9), (1, 2.5, 0.1, 1e9), (2, 0.01, 0.5, 1.2)]
)
def test_learn_least_squares(D, K, weight, drift, largest):
    rng = np.random.default_rng(100 * D + K)
    P, W, v = _positive(rng, D), rng.normal(size=(K, D)), np.empty(D)
    for _ in range(5):
        phi, errors = rng.normal(size=D), rng.normal(size=K)
        expected_P, expected_W = naive.learn_least_squares(np.tril(P), W, phi, errors, weight, drift, largest)
        kernels.learn_least_squares(P, W, phi, errors, weight, drift, largest, v)
        _assert_lower(P, expected_P)
        assert np.allclose(W, expected_W, atol=1e-10, rtol=1e-10)


def _packed(P):
    tiles = np.full(packed_size(len(P)), np.nan)
    pack(P, tiles)
    return tiles


def _padded(numbers):
    numbers = np.asarray(numbers)
    return np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, padded(numbers.shape[-1]) - numbers.shape[-1])])


def _late(rng, D, n):
    """Vectors that are due to a matrix, and some diagonals of it."""
    return np.concatenate([rng.normal(size=(n, D)) / 9, np.zeros((RANK - n, D))]), rng.uniform(1, 2, size=(2, D))


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize(("weight", "drift", "largest"), [(1.0, 0.0, 1e9), (2.5, 0.1, 1e9), (0.3, 0.5, 1.2)])
def test_learn_soundly(D, weight, drift, largest):
    rng = np.random.default_rng(D)
    P, W, errors = _positive(rng, D), rng.normal(size=(3, D)), rng.normal(size=3)
    phi = rng.normal(size=D)
    expected_P, expected_W = naive.learn_soundly(np.tril(P), W, phi, errors, weight, drift, largest)
    kernels.learn_soundly(P, W, phi, errors, weight, drift, largest, np.empty((2, D)))
    _assert_lower(P, expected_P, 1e-8)
    assert np.allclose(W, expected_W, atol=1e-8)


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize("n", [0, 1, 5, 8])
def test_late_product(D, n):
    rng = np.random.default_rng(D + n)
    P, x, (late, diagonals) = naive.symmetric(_positive(rng, D)), rng.normal(size=D), _late(rng, D, n)
    diagonals[1] = np.diag(P) - (late**2).sum(axis=0)
    expected, v = naive.late_product(P, late, n, diagonals, x), _padded(P @ x)
    late[n:] = np.nan  # nobody reads what is not due
    kernels.late_product(_padded(late), n, diagonals, _padded(x), v)
    assert np.allclose(v, _padded(expected), atol=1e-12)


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize(("drift", "largest"), [(0.0, 9.0), (0.1, 9.0), (0.5, 1.2)])
def test_move_diagonal(D, drift, largest):
    rng = np.random.default_rng(D)
    late, diagonals = _late(rng, D, 1)
    expected = naive.move_diagonal(late[0], drift, largest, diagonals)
    kernels.move_diagonal(_padded(late[0]), drift, largest, diagonals)
    assert np.allclose(diagonals, expected, atol=1e-14)


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize("n", [0, 1, 5, 8])
def test_settle(D, n):
    rng = np.random.default_rng(D + n)
    P, (late, diagonals) = _positive(rng, D), _late(rng, D, n)
    expected = naive.settle(np.tril(P), late, diagonals)
    tiles, vectors, settled = _packed(P), _padded(late), np.full((D, D), np.nan)
    kernels.settle(tiles, vectors, diagonals)
    unpack(tiles, settled)
    assert np.allclose(settled, np.tril(expected), atol=1e-13)
    assert not vectors.any()
    assert diagonals[1].tobytes() == diagonals[0].tobytes() == np.diag(settled).tobytes()


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize(
    ("K", "weight", "drift", "largest"), [(12, 1.0, 0.0, 1e9), (1, 2.5, 0.1, 1e9), (2, 0.01, 0.5, 1.2)]
)
def test_learn_least_squares_late(D, K, weight, drift, largest):
    """Records enough that the matrix changes twice, and more are due."""
    rng = np.random.default_rng(100 * D + K)
    P, W, late = _positive(rng, D), rng.normal(size=(K, D)), np.zeros((RANK, padded(D)))
    P *= min(1.0, largest / np.diag(P).max())
    exact_P, exact_W = np.tril(P), W.copy()
    tiles, diagonals = _packed(P), np.array([np.diag(P)] * 2)
    for n in range(2 * RANK + 3):
        phi, errors = rng.normal(size=D), rng.normal(size=K)
        exact_P, exact_W = naive.learn_least_squares_late(exact_P, exact_W, phi, errors, weight, drift, largest)
        whole, v = np.empty((D, D)), _padded(naive.symmetric(naive.unpack(tiles, D)) @ phi)
        arguments = diagonals, _padded(phi), errors, weight, drift, largest, v
        kernels.learn_least_squares_late(W, late, n % RANK, *arguments)
        assert late.any(axis=1).sum() == n % RANK + 1
        if n % RANK == RANK - 1:
            kernels.settle(tiles, late, diagonals)
        settled = tiles.copy()
        kernels.settle(settled, late.copy(), diagonals.copy())
        unpack(settled, whole)
        assert np.allclose(whole, np.tril(exact_P), atol=1e-10, rtol=1e-10)
        assert np.allclose(W, exact_W, atol=1e-10, rtol=1e-10)
        assert not v[D:].any()


@pytest.mark.parametrize("n", [1, 7, 64, 267])
def test_sound_gain(n):
    """Of a positive P it is 1 / (1 / w + x.v); the most elsewhere is what leaves its diagonal above 0."""
    rng = np.random.default_rng(n)
    factor, x = rng.normal(size=(n, n + 2)), rng.normal(size=n)
    P = factor @ factor.T / n
    v, diagonal, largest = P @ x, np.diag(P).copy(), 2 * np.diag(P).max()
    for weight in (1e-3, 1.0, 1e6):
        plain = kernels.sound_gain(float(x @ v), weight, diagonal, largest, v)
        assert plain == pytest.approx(1 / (1 / weight + x @ v))
        for spread in (x @ v / 100, 1e-12, 0.0, -1.0):
            gain = kernels.sound_gain(float(spread), weight, diagonal, largest, v)
            assert gain == pytest.approx(naive.sound_gain(spread, weight, diagonal, largest, v))
            assert (diagonal - gain * v**2).min() > -1e-12 * largest
            assert (gain == 0) == (spread <= 0)


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize(
    ("K", "weight", "forgetting", "rho"), [(12, 1.0, 1.0, 0.1), (1, 3.0, 0.99, 0.1), (2, 0.2, 0.5, 10.0)]
)
def test_learn_newton(D, K, weight, forgetting, rho):
    rng = np.random.default_rng(100 * D + K)
    P, W, v = _positive(rng, D), rng.normal(size=(K, D)), np.empty(D)
    for _ in range(5):
        phi, p, label = rng.normal(size=D), rng.dirichlet(np.ones(K)), int(rng.integers(K))
        expected_P, expected_W = naive.learn_newton(np.tril(P), W, phi, p, label, weight, forgetting, rho)
        kernels.learn_newton(P, W, phi, p, label, weight, forgetting, rho, v)
        _assert_lower(P, expected_P)
        assert np.allclose(W, expected_W, atol=1e-10, rtol=1e-10)
