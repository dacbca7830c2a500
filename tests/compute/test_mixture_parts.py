"""Where the parts of a mixture lie: each number in one of them, and none left over."""

import math

import numpy as np
import pytest

from streamkernel.compute.mixture_parts import n_numbers, n_rows, parts_of
from tests import naive


@pytest.mark.parametrize(("C", "T", "L", "n_blocks"), [(1, 1, 0, 1), (3, 1, 5, 4), (2, 2, 3, 7)])
def test_each_number_is_in_one_part(C, T, L, n_blocks):
    shape, n = (n_rows(C, T), 512), n_numbers(C, T, L, n_blocks)
    rows = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    counts = np.arange(2)
    parts = parts_of(rows, np.arange(float(n)), counts, C, T, L)
    shapes = naive.parts_of(C, T, L, n_blocks, 512)
    assert {name: part.shape for name, part in parts._asdict().items() if name != "counts"} == shapes
    for own, size in ((np.float32, rows.size), (np.float64, n)):
        found = np.concatenate([part.ravel() for part in parts if part.dtype == own])
        assert np.array_equal(np.sort(found), np.arange(size))
