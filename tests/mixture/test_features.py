"""The features of a mixture: the kernel that they approximate, and what later inputs and blocks change."""

import numpy as np
import pytest

from streamkernel.compute.mixture_pass import fill_features
from streamkernel.compute.projection import TILE
from streamkernel.mixture.features import SHAPES, MixtureFeatures

KEYS = np.arange(1, 8, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def features(n_inputs, n_blocks, block_size=256):
    made = MixtureFeatures(block_size, block_size * n_blocks, seed=3)
    made.begin(n_inputs, 2.0)
    made.take_blocks(n_blocks, n_inputs)
    return made


def rows_of(feature_map):
    """The frequencies of each input, (d, m)."""
    return np.concatenate(list(feature_map.W), axis=1)


def test_products_approximate_the_mean_of_the_kernels():
    d, n_blocks = 3, 64
    X = np.random.default_rng(1).normal(size=(2, d)).astype(np.float32)
    feature_map = features(d, n_blocks).feature_map(KEYS[:d], n_blocks)
    D = TILE + 2 * 256 * n_blocks
    Phi = np.zeros((2, D), np.float32)
    fill_features(X, feature_map, n_blocks, Phi)
    # E cos(w (x - x')): over all subsets of inputs of a size, each as likely.
    delta = (X[0] - X[1]) ** 2
    expected = []
    for width, size in SHAPES:
        scale = (d / (size or d)) / (2 * (2.0 * width) ** 2)
        subsets = {1: [[0], [1], [2]], 2: [[0, 1], [0, 2], [1, 2]], 0: [[0, 1, 2]]}[size]
        expected.append(np.mean([np.exp(-scale * delta[subset].sum()) for subset in subsets]))
    waves = Phi[:, TILE:].astype(float)
    assert waves[0] @ waves[1] == pytest.approx(np.mean(expected), abs=0.02)
    assert waves[0] @ waves[0] == pytest.approx(1)
    assert np.allclose(Phi[:, : 1 + d], np.concatenate([np.full((2, 1), 0.5), X / np.sqrt(d)], axis=1))


def test_a_later_input_reaches_the_features_of_all_inputs_only():
    made = features(3, 2)
    before = rows_of(made.feature_map(KEYS[:3], 2))
    after = rows_of(made.feature_map(KEYS[:4], 2))
    assert np.array_equal(after[:3], before)
    sizes = np.array([size for _, size in SHAPES])[np.arange(512) % len(SHAPES)]
    assert (after[3, sizes != 0] == 0).all()
    assert (after[3, sizes == 0] != 0).mean() > 0.95  # as a draw may be 0


def test_a_block_to_come_sees_the_inputs_of_its_time():
    made, other = features(3, 1), features(3, 1)
    made.feature_map(KEYS[:3], 2)  # the second block is drawn already
    for own in (made, other):
        W = rows_of(own.feature_map(KEYS[:5], 2))
    assert np.array_equal(W, rows_of(made.feature_map(KEYS[:5], 2)))
    sizes = np.array([size for _, size in SHAPES])[np.arange(512) % len(SHAPES)]
    few = sizes != 0
    assert (W[3:, :256][:, few[:256]] == 0).all()
    assert (W[3:, 256:][:, few[256:]] != 0).any(axis=1).all()


def test_extra_inputs_are_drawn_as_if_they_stayed():
    made = features(3, 2)
    extra = made.feature_map(KEYS[:3], 2, KEYS[3:4]).W
    assert np.array_equal(extra, made.feature_map(KEYS[:4], 2).W)
