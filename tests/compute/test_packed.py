"""Packed symmetric matrices: every number in its place, and products as those of whole matrices."""

import numpy as np
import pytest

from streamkernel.compute import packed as kernels
from streamkernel.compute.packed import RANK, packed_size, padded
from streamkernel.compute.vectors import LANES, aligned_zeros
from tests import naive

SIZES = [0, 1, 2, 7, 8, 9, 16, 17, 31, 61, 267]


def _matrix(rng, D):
    """Whole numbers, for which there is no rounding; nonsense above the diagonal, which nobody may read."""
    P = rng.integers(-9, 9, size=(D, D)).astype(float)
    P[np.triu_indices(D, 1)] = np.nan
    return P


def _packed(P):
    tiles = np.full(packed_size(len(P)), np.nan)
    kernels.pack(P, tiles)
    return tiles


def test_place():
    tiles = naive.pack(np.arange(21 * 21.0).reshape(21, 21))
    for i in range(21):
        for j in range(i + 1):
            assert kernels.place(i, j) == naive.place(i, j)
            assert tiles[kernels.place(i, j)] == 21 * i + j


@pytest.mark.parametrize("D", SIZES)
def test_packed_and_unpacked(D):
    P = _matrix(np.random.default_rng(D), D)
    tiles, again = _packed(P), np.full((D, D), np.nan)
    assert tiles.tolist() == naive.pack(np.tril(np.nan_to_num(P))).tolist()
    kernels.unpack(tiles, again)
    assert again.tolist() == naive.unpack(tiles, D).tolist() == np.tril(np.nan_to_num(P)).tolist()


def _vectors(rng, n, D):
    """Whole numbers, and zeros in some tiles."""
    tiles = np.repeat(rng.random((n, padded(D) // LANES)) < 0.7, LANES, axis=1)
    return np.pad(rng.integers(-9, 9, size=(n, D)), ((0, 0), (0, padded(D) - D))) * tiles.astype(float)


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_multiply_rows(D, n):
    rng = np.random.default_rng(D + n)
    P, X, V = _matrix(rng, D), _vectors(rng, n, D), np.full((n, padded(D)), np.nan)
    tiles, whole, first = _packed(P), np.zeros((padded(D), padded(D))), 0
    whole[:D, :D] = naive.symmetric(P)
    filled, ends = np.full((n, padded(D) // LANES), -1), np.zeros(n, np.int64)
    for block in range(padded(D) // LANES):
        expected, in_x = naive.multiply_rows(whole, block, X, V)
        kernels.multiply_rows(tiles, first, block, X, filled, ends, V)
        np.testing.assert_array_equal(V, expected)
        assert [row[:end].tolist() for row, end in zip(filled, ends, strict=True)] == in_x
        first += (block + 1) * LANES**2
    assert V.tolist() == (X @ whole).tolist()


@pytest.mark.parametrize("D", SIZES)
def test_downdate_row(D):
    rng = np.random.default_rng(D)
    tiles, vectors, first = _packed(_matrix(rng, D)), _vectors(rng, RANK, D), 0
    for block in range(padded(D) // LANES):
        expected = naive.downdate_row(naive.symmetric(naive.unpack(tiles, padded(D))), block, vectors)
        kernels.downdate_row(tiles, first, block, vectors)
        assert tiles.tolist() == naive.pack(expected).tolist()
        first += (block + 1) * LANES**2


@pytest.mark.parametrize("D", SIZES)
@pytest.mark.parametrize("n", [0, 1, 8])
@pytest.mark.parametrize("is_due", [False, True])
def test_settled_products(D, n, is_due):
    rng = np.random.default_rng(D + n)
    tiles, late, X = _packed(_matrix(rng, D)), _vectors(rng, RANK, D), _vectors(rng, n, D)
    diagonals, V = rng.integers(-9, 9, size=(2, D)).astype(float), np.full((n, padded(D)), np.nan)
    P, products = naive.settled_products(naive.unpack(tiles, D), is_due, late[:, :D], diagonals, X[:, :D])
    due, before = late.copy(), diagonals.copy()
    kernels.settled_products(tiles, is_due, late, diagonals, X, V, n)
    assert tiles.tolist() == naive.pack(P).tolist()
    assert V[:, :D].tolist() == products.tolist()
    assert not V[:, D:].any()
    assert late.tolist() == (0 * due if is_due else due).tolist()
    assert diagonals.tolist() == (before[[0, 0]] if is_due else before).tolist()


def test_vectors_at_once_have_the_bits_of_each_alone():
    rng = np.random.default_rng(3)
    P, X, diagonals = rng.normal(size=(61, 61)), rng.normal(size=(8, 64)), rng.normal(size=(2, 61))
    X[:, 61:] = X[:4, 24:48] = X[2] = 0
    tiles, V, alone = _packed(P), np.full((2, 8, 64), np.nan), np.zeros((RANK, 64))
    kernels.settled_products(tiles, False, alone, diagonals, X, V[0], 8)
    for r in range(8):
        kernels.settled_products(tiles, False, alone, diagonals, X[r:], V[1, r:], 1)
    assert V[0].tobytes() == V[1].tobytes()
    np.testing.assert_allclose(V[0, :, :61], X[:, :61] @ naive.symmetric(P), atol=1e-12)


def test_where_the_arrays_begin_changes_no_bit():
    rng = np.random.default_rng(0)
    P, numbers, told = rng.normal(size=(61, 61)), rng.normal(size=(RANK, 64)), []
    numbers[:, 61:] = 0
    for at in range(9):
        tiles, vectors, V = (aligned_zeros(packed_size(61) + 99)[at:][:n] for n in (packed_size(61), 512, 512))
        vectors, V = vectors.reshape(RANK, 64), V.reshape(RANK, 64)
        vectors[:] = numbers
        kernels.pack(P, tiles)
        kernels.settled_products(tiles, True, vectors, np.ones((2, 61)), numbers, V, RANK)
        told.append(tiles.tobytes() + V.tobytes())
    assert len(set(told)) == 1
