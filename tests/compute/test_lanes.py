"""Vectors of sixteen, from any element on, against matrices: nothing beside them is touched."""

import functools

import numba
import numpy as np
import pytest
from scipy.linalg import hadamard

from streamkernel.compute import lanes

LANES = lanes.LANES
ANYWHERE = pytest.mark.parametrize("at", [0, 1, 7, 16, 35])


@functools.cache
def _called(instruction):
    """A compiled function that is one instruction."""
    return numba.njit(lambda *arguments: instruction(*arguments))


def _whole_numbers(n, seed=0):
    """Whose sums have no rounding."""
    return np.random.default_rng(seed).integers(-99, 99, n).astype(np.float32)


@ANYWHERE
@pytest.mark.parametrize("value", [0.1, -0.0, np.inf])
def test_fill(at, value):
    data = _whole_numbers(60)
    expected = data.copy()
    expected[at : at + LANES] = value
    _called(lanes.fill)(data, at, np.float32(value))
    assert data.tobytes() == expected.tobytes()


@ANYWHERE
@pytest.mark.parametrize("step", [LANES, 19, 3 * LANES])
@pytest.mark.parametrize(("n", "transform"), [(2, lanes.two), (4, lanes.four), (8, lanes.eight), (16, lanes.sixteen)])
def test_a_transform_among_some_vectors(n, transform, step, at):
    data = _whole_numbers(at + n * step + 20)
    places = at + step * np.arange(n)[:, None] + np.arange(LANES)
    expected = data.copy()
    expected[places] = hadamard(n) @ data[places]
    _called(transform)(data, at, step)
    assert data.tobytes() == expected.tobytes()


@ANYWHERE
@pytest.mark.parametrize("bit", [0, 5, 16])
@pytest.mark.parametrize("word", [0, 3, LANES])
def test_a_transform_that_takes_signs_first(word, bit, at):
    data = _whole_numbers(at + 17 * LANES)
    signs = np.random.default_rng(bit).integers(0, 2**32, 2 * LANES, np.uint32)
    places = at + LANES * np.arange(16)[:, None] + np.arange(LANES)
    flips = [[-1 if own >> (31 - bit - i) & 1 else 1 for own in signs[word : word + LANES].tolist()] for i in range(16)]
    expected = data.copy()
    expected[places] = hadamard(16) @ (flips * data[places])
    before = signs.copy()
    _called(lanes.signed_sixteen)(data, at, signs, word, bit)
    assert data.tobytes() == expected.tobytes()
    assert (signs == before).all()


@pytest.mark.parametrize(("at", "place"), [(0, 0), (3, 17)])
def test_add_four_dots(at, place):
    draws = np.random.default_rng(4)
    rows, other = draws.normal(size=2000).astype(np.float32), draws.normal(size=300).astype(np.float32)
    sums = np.arange(6.0)
    _called(lanes.add_four_dots)(rows, at, 400, other, place, sums, 1)
    factor = other[place : place + lanes.DOT].astype(float)
    found = [rows[at + 400 * i : at + 400 * i + lanes.DOT] @ factor for i in range(4)]
    assert np.allclose(sums, np.arange(6.0) + np.array([0, *found, 0]), atol=1e-4)
    assert sums[[0, 5]].tolist() == [0, 5]
