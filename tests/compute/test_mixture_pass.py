"""The compiled pass of a mixture against its plain twin, and that no bit depends on how the records are cut."""

import numpy as np
import pytest

from streamkernel.compute.mixture_parts import CLASSES, LABELS, NUMBERS, MixtureMap
from streamkernel.mixture.heads import MixtureHeads
from tests import naive

F, MOST, N = 16, 6, 150
#: What the twin calls a kind, with its outputs; several targets have gaps.
KINDS = {"numbers": (NUMBERS, 1), "two numbers": (NUMBERS, 2), "labels": (LABELS, 2), "classes": (CLASSES, 3)}


def records(kind, d=3, seed=1):
    """Rows, targets with gaps, weights, and frequencies in turns."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(N, d)).astype(np.float32)
    X[draws.random((N, d)) < 0.1] = 0
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    y = np.stack([score, X[:, 0] - X[:, 1]][: 1 if kind in ("numbers", "classes") else 2], axis=1).astype(float)
    if kind == "classes":
        y = np.digitize(y, [-0.5, 0.5]).astype(float)
    elif kind == "labels":
        y = (y > 0).astype(float)
    y[draws.random(y.shape) < 0.1] = np.nan
    weights = np.where(draws.random(N) < 0.1, 0.0, draws.choice([1.0, 1.0, 2.5], N))
    W = (draws.normal(size=(d, F * MOST)) / (2 * np.pi)).astype(np.float32)
    return X, y, weights, W


def heads_of(kind, d=3):
    number, n_outputs = KINDS[kind]
    heads = MixtureHeads(number, F, MOST)
    heads.begin(d, n_outputs)
    return heads


def map_of(W):
    blocks = np.ascontiguousarray(W.reshape(len(W), MOST, F).transpose(1, 0, 2))
    return MixtureMap(blocks, np.sqrt(len(W)), len(W), 0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_pass_is_that_of_plain_numpy(kind):
    X, y, weights, W = records(kind)
    heads = heads_of(kind)
    twin = naive.NaiveMixture(kind.removeprefix("two "), KINDS[kind][1], 3, W.astype(float), np.sqrt(3), 0.1, F, MOST)
    expected = naive.pass_mixture(twin, X.astype(float), y, weights)
    scores = heads.advance(X, y, weights, map_of(W))
    assert np.allclose(scores, expected, atol=2e-4), np.abs(scores - expected).max()
    assert 1 < heads.n_blocks == len(twin.beta)
    assert heads.last_margin == pytest.approx(twin.margin, rel=1e-3)
    assert heads.n_blocks + heads.n_reused == heads.n_steps + 1
    assert np.allclose(heads.weights, naive.hedge(twin.losses).mean(axis=0), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_no_bit_depends_on_the_cut(kind):
    X, y, weights, W = records(kind, seed=2)
    whole, parts = heads_of(kind), heads_of(kind)
    scores = whole.advance(X, y, weights, map_of(W))
    cut, start = [], 0
    for size in np.random.default_rng(3).integers(0, 8, 100):
        part = slice(start, start + size)
        cut.append(parts.advance(X[part], y[part], weights[part], map_of(W)))
        start += size
    assert start >= N
    assert np.array_equal(scores, np.concatenate(cut))
    for name, value in whole.state().items():
        assert np.array_equal(value, parts.state()[name], equal_nan=True), name
