"""Which inputs a frequency sees: as many as asked for, each as likely, and whatever the part that is drawn."""

import numpy as np
import pytest

from streamkernel.compute.gaussians import feature_words, restrict
from tests import naive

M = 3000


def restricted(size, n_inputs, first=0, rows=6):
    words = np.empty(M, np.uint64)
    feature_words(np.uint64(5), 0, words)
    W = np.ones((rows, M), np.float32)
    given = words, np.full(M, size), np.full(M, n_inputs), first
    expected = naive.restrict(*given, W)
    restrict(*given, W)
    assert np.allclose(W, expected)
    return W


@pytest.mark.parametrize(("size", "seen"), [(1, 1), (2, 2), (0, 6)])
def test_a_frequency_sees_so_many_inputs_each_as_likely(size, seen):
    W = restricted(size, 6)
    assert ((W != 0).sum(axis=0) == seen).all()
    # The squared length of a Gaussian frequency is the same, on average: distances stay as large.
    assert np.allclose((W**2).sum(axis=0), 6)
    assert np.allclose((W != 0).mean(axis=1), seen / 6, atol=0.04)


@pytest.mark.parametrize("size", [1, 2])
def test_later_inputs_are_not_among_them_and_parts_agree(size):
    W = restricted(size, 4)
    assert (W[4:] == 0).all()
    assert np.array_equal(W, np.concatenate([restricted(size, 4, 0, 3), restricted(size, 4, 3, 3)]))
