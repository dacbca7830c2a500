"""The laws of random numbers: part of every checkpoint of the kernels that draw them."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamkernel.compute import laws
from tests.naive import laws as naive

WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5)
LAWS = {
    "CAUCHY": stats.cauchy(),
    "LAPLACE": stats.laplace(),
    "SECH": stats.hypsecant(scale=1 / math.pi),
    "EXPONENTIAL": stats.expon(),
    "LEVY": stats.levy(),
}


def _drawn(law, words, keys, scale=1.0, dtype=np.float64):
    out = np.empty((len(keys), len(words)), dtype)
    laws.draws(getattr(laws, law), np.array(words, np.uint64), np.array(keys, np.uint64), scale, out)
    return out


@given(st.sampled_from([*LAWS, "JENSEN_SHANNON"]), WORDS, WORDS, st.floats(0.1, 10))
def test_draws_are_those_of_the_plain_twin(law, words, keys, scale):
    expected = naive.draws(getattr(laws, law), words, keys, scale)
    assert _drawn(law, words, keys, scale) == pytest.approx(np.array(expected), rel=1e-11, abs=1e-14)


@given(WORDS, st.integers(0, 2**64 - 1), st.floats(0.05, 50))
def test_gammas(words, key, shape):
    out = np.empty(len(words))
    laws.gammas(np.array(words, np.uint64), np.uint64(key), shape, out)
    assert out == pytest.approx(naive.gammas(words, key, shape), rel=1e-9)


@given(WORDS, WORDS)
def test_signs_and_uniforms(words, keys):
    out = np.empty((len(keys), len(words)))
    laws.signs(np.array(words, np.uint64), np.array(keys, np.uint64), out)
    assert out.tolist() == naive.signs(words, keys)
    row = np.empty(len(words))
    laws.uniforms(np.array(words, np.uint64), np.uint64(keys[0]), row)
    assert row.tolist() == naive.uniforms(words, keys[0])


@pytest.mark.parametrize("law", LAWS)
def test_the_laws(law):
    rng = np.random.default_rng(7)
    words, keys = rng.integers(0, 2**64, 4000, dtype=np.uint64), rng.integers(0, 2**64, 3, dtype=np.uint64)
    drawn = _drawn(law, words, keys)
    assert stats.kstest(drawn.reshape(-1), LAWS[law].cdf).pvalue > 0.002
    ranks = drawn.argsort(axis=1).argsort(axis=1)
    assert np.abs(np.corrcoef(ranks) - np.eye(3)).max() < 0.05


def test_the_bits_are_pinned():
    """IEEE arithmetic in a fixed order: the same on every processor."""
    rng = np.random.default_rng(10)
    words, keys = rng.integers(0, 2**64, 64, dtype=np.uint64), rng.integers(0, 2**64, 2, dtype=np.uint64)
    drawn = b"".join(_drawn(law, words, keys).astype("<f8").tobytes() for law in [*LAWS, "JENSEN_SHANNON"])
    out = np.empty(64)
    laws.gammas(words, np.uint64(1), 0.7, out)
    assert hashlib.sha256(drawn + out.astype("<f8").tobytes()).hexdigest() == PINNED


PINNED = "664922e50afacc98881ac8c9e91e53d9ed1ceb3c4ea3885607ee331950bed280"


@given(st.floats(1e-300, 1e300), st.floats(-700, 700), st.floats(-1, 1))
def test_functions_are_exact_to_rounding(x, y, w):
    assert laws.log(x) == pytest.approx(naive.log(x), rel=4e-16, abs=2e-16)
    assert laws.exp(y) == pytest.approx(naive.exp(y), rel=2e-15)
    assert laws.sin_half_turns(w) == pytest.approx(naive.sin_half_turns(w), abs=5e-16)
    assert laws._tangent(0.49 * w) == pytest.approx(naive._tangent(0.49 * w), rel=1e-13, abs=5e-16)
    for compiled, twin in ((laws._sine, naive._sine), (laws._cosine, naive._cosine)):
        assert compiled(w * math.pi / 4) == pytest.approx(twin(w * math.pi / 4), abs=5e-16)


def test_draws_are_cut_where_projections_stay_finite():
    words = np.random.default_rng(11).integers(0, 2**64, 1000, dtype=np.uint64)
    assert np.abs(_drawn("CAUCHY", words, [1], 1e20, np.float32)).max() == np.float32(1e16)
    assert (laws.exp(-800.0), laws.exp(800.0)) == (0.0, math.inf)


def test_salted_words_are_others():
    words = np.arange(100, dtype=np.uint64)
    own = [np.empty(100, np.uint64) for _ in range(3)]
    for number, out in enumerate(own, start=1):
        laws.salted(words, number, out)
    laws.salted(own[0], 2, own[2])
    assert own[1].tolist() == naive.salted(words.tolist(), 2)
    assert len({*words.tolist(), *np.concatenate(own).tolist()}) == 400
