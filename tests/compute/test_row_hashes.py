"""Hashes of rows are of what they hold, and of nothing else."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from streamkernel.compute import gaussians as kernels
from tests import naive

KEYS = st.lists(st.integers(0, 2**64 - 1), min_size=0, max_size=5)


@given(KEYS, st.data())
def test_row_hashes(keys, data):
    shape = data.draw(st.integers(0, 4)), len(keys)
    numbers = st.one_of(st.just(math.nan), st.floats(allow_nan=False, allow_infinity=False))
    values = data.draw(arrays.arrays(np.float64, shape, elements=numbers)) + 0.0
    expected = naive.add_row_hashes(values.tolist(), keys, [0] * len(values))
    assert kernels.row_hashes(values, np.array(keys, np.uint64)).tolist() == expected


def test_a_row_has_one_hash_whatever_the_order_of_columns_and_the_sign_of_zero():
    rng = np.random.default_rng(1)
    values, keys = rng.normal(size=(50, 4)), rng.integers(0, 2**63, 4).astype(np.uint64)
    values[::3, 1], values[1::3, 2] = 0.0, np.nan
    hashes = kernels.row_hashes(values, keys)
    order = [2, 0, 3, 1]
    np.testing.assert_array_equal(kernels.row_hashes(values[:, order], keys[order]), hashes)
    np.testing.assert_array_equal(kernels.row_hashes(np.where(values == 0, -0.0, values), keys), hashes)
    wider = np.concatenate([values, np.full((50, 1), np.nan)], axis=1)
    np.testing.assert_array_equal(kernels.row_hashes(wider, np.append(keys, np.uint64(9))), hashes)
    assert len(set(hashes.tolist())) == 50
    assert len(set(kernels.row_hashes(values[:, order], keys).tolist()) & set(hashes.tolist())) == 0
