"""The steps of affine projection against numpy."""

import numpy as np
import pytest

from streamkernel.compute.projection import (
    BATCH,
    SYSTEMS,
    TILE,
    WINDOW,
    products,
    row_products,
    solve_records,
    subtract_batch,
    subtract_window,
    window_products,
)
from tests import naive

TILES = 3


@pytest.fixture
def rows():
    return np.random.default_rng(1).normal(size=(WINDOW + BATCH, TILES * TILE)).astype(np.float32)


def tiles_of(rows):
    return np.ascontiguousarray(rows[:WINDOW].reshape(WINDOW, TILES, TILE).transpose(1, 0, 2))


@pytest.mark.parametrize("n_tiles", [1, TILES])
def test_products(rows, n_tiles):
    new, D = np.ascontiguousarray(rows[WINDOW:]), n_tiles * TILE
    expected = naive.window_products(new[:, :D], rows[:, :D], 2, 11)
    found = np.full((WINDOW, BATCH), 7.0)
    window_products(new, n_tiles, tiles_of(rows), 2, 11, found)
    assert np.allclose(found[2:11], list(expected.values()), atol=1e-4)
    assert (found[:2] == 7).all()
    assert (found[11:] == 7).all()
    one, of_row = np.empty(BATCH), np.full(WINDOW, 7.0)
    for i in range(2, 11):
        products(new, n_tiles, rows[i], one)
        assert np.array_equal(one, found[i])  # as neither the way nor the company changes a bit
    row_products(new[2], n_tiles, tiles_of(rows), 4, 12, of_row)
    assert np.allclose(of_row[4:12], naive.row_products(new[2, :D], rows[:, :D], 4, 12), atol=1e-4)
    assert np.array_equal(of_row[4:11], found[4:11, 2])
    assert (of_row[[3, 12]] == 7).all()


def test_a_rows_products_do_not_depend_on_its_company(rows):
    new, one, other = np.ascontiguousarray(rows[WINDOW:]), np.empty(BATCH), np.empty(BATCH)
    products(new, TILES, rows[0], one)
    products(np.ascontiguousarray(new[[2, 0, 0, 1]]), TILES, rows[0], other)
    assert np.array_equal(other, one[[2, 0, 0, 1]])


def test_subtraction(rows):
    draws = np.random.default_rng(2)
    gains = draws.random(TILES * TILE).astype(np.float32)
    factors = draws.normal(size=(2, WINDOW)).astype(np.float32)
    start = draws.normal(size=(2, TILES * TILE)).astype(np.float32)
    out = start.copy()
    subtract_window(tiles_of(rows), 2, factors, gains, out)
    expected = naive.subtract_window(rows[:WINDOW], factors, gains, start)
    assert np.allclose(out[:, : 2 * TILE], expected[:, : 2 * TILE], atol=1e-4)
    assert np.array_equal(out[:, 2 * TILE :], start[:, 2 * TILE :])
    out = start.copy()
    few = np.ascontiguousarray(factors[:, 8:12])
    subtract_batch(tiles_of(rows), TILES, 8, few, gains, out)
    assert np.allclose(out, naive.subtract_batch(rows, 8, few, gains, start), atol=1e-4)


@pytest.mark.parametrize("n", [1, 7, WINDOW])
def test_the_solutions(n):
    draws = np.random.default_rng(3)
    Phi, ridges = draws.normal(size=(WINDOW, 40)), (0.3, 1.0, 3.0, 0.1, 0.1)
    weights, residuals = draws.choice([1e-200, 0.5, 1.0, 1e6], WINDOW), draws.normal(size=(2, WINDOW, SYSTEMS))
    gram, solved = Phi @ Phi.T, residuals.copy()
    solve_records(gram, ridges, weights, n, solved)
    assert np.allclose(solved, naive.solve_records(gram, ridges, weights, n, residuals))
