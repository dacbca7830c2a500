"""Packed symmetric matrices: every number in its place, and products as those of whole matrices."""

import numpy as np
import pytest

from streamkernel.compute import packed as kernels
from streamkernel.compute.packed import RANK, packed_size, padded
from streamkernel.compute.vectors import aligned_zeros
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


@pytest.mark.parametrize("D", SIZES)
def test_packed_product(D):
    rng = np.random.default_rng(D)
    tiles, x, v = _packed(_matrix(rng, D)), np.zeros(padded(D)), np.full(padded(D), np.nan)
    x[:D] = rng.integers(-9, 9, size=D)
    kernels.packed_product(tiles, x, v)
    assert v.tolist() == naive.packed_product(tiles, x).tolist()


@pytest.mark.parametrize("D", SIZES)
def test_packed_downdate(D):
    rng = np.random.default_rng(D)
    tiles, vectors = _packed(_matrix(rng, D)), np.zeros((RANK, padded(D)))
    vectors[:, :D] = rng.integers(-9, 9, size=(RANK, D))
    expected = naive.packed_downdate(tiles, vectors)
    kernels.packed_downdate(tiles, vectors)
    assert tiles.tolist() == expected.tolist()


def test_where_the_arrays_begin_changes_no_bit():
    rng = np.random.default_rng(0)
    P, numbers = rng.normal(size=(61, 61)), rng.normal(size=(RANK, 64))
    numbers[:, 61:] = 0
    told = []
    for at in range(9):
        tiles, vectors, v = (
            aligned_zeros(packed_size(61) + RANK * 64 + 99)[at:][:n] for n in (packed_size(61), 512, 64)
        )
        vectors = vectors.reshape(RANK, 64)
        vectors[:] = numbers
        kernels.pack(P, tiles)
        kernels.packed_downdate(tiles, vectors)
        kernels.packed_product(tiles, vectors[3], v)
        told.append(tiles.tobytes() + v.tobytes())
    assert len(set(told)) == 1
