"""Running moments against the mean and deviation of everything seen so far."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import moments as kernels
from tests import naive

LIMIT = 10.0


@st.composite
def _tables(draw):
    n, d = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    value = st.one_of(st.just(math.nan), st.sampled_from([0.0, 1.0, 5.5]), st.floats(-1e6, 1e6))
    raw = draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n))
    learn = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(raw), np.array(learn), np.array(draw(st.lists(st.booleans(), min_size=d, max_size=d)))


def _scaled(raw, learn, is_number, moments):
    out = np.empty(raw.shape)
    kernels.scale_rows(raw, learn, is_number, *moments, LIMIT, out)
    return out


def _fresh(d):
    return [np.zeros(d) for _ in range(3)]


@given(_tables())
def test_scale_rows(table):
    raw, learn, is_number = table
    moments = _fresh(raw.shape[1])
    exact, observed = naive.scale_rows(raw, learn, is_number, LIMIT)
    # A deviation much smaller than the mean amplifies the rounding of both.
    assert np.allclose(_scaled(raw, learn, is_number, moments), exact, atol=1e-6, rtol=1e-6)
    count, mean, _ = moments
    assert count.tolist() == [len(values) if number else 0 for values, number in zip(observed, is_number, strict=True)]
    assert np.allclose(mean, [np.mean(v) if v and number else 0 for v, number in zip(observed, is_number, strict=True)])


@given(_tables(), st.integers(0, 25))
def test_any_cut_gives_the_same_bits(table, cut):
    raw, learn, is_number = table
    whole, parts = _fresh(raw.shape[1]), _fresh(raw.shape[1])
    together = _scaled(raw, learn, is_number, whole)
    apart = [_scaled(raw[part], learn[part], is_number, parts) for part in (slice(cut), slice(cut, None))]
    assert np.concatenate(apart).tobytes() == together.tobytes()
    assert [m.tobytes() for m in parts] == [m.tobytes() for m in whole]


def test_values_whose_squares_overflow_leave_finite_moments():
    raw = np.array([[1e308], [-1e308], [1e200], [3.0], [1e308]])
    moments = _fresh(1)
    out = _scaled(raw, np.ones(5, np.bool_), np.ones(1, np.bool_), moments)
    assert np.isfinite(out).all()
    assert np.isfinite(moments).all()
    assert np.allclose(out, naive.scale_rows(raw, [True] * 5, [True], LIMIT)[0])


@given(_tables())
def test_clip_rows(table):
    raw = table[0]
    for dtype in (np.float32, np.float64):
        out = np.empty(raw.shape, dtype)
        kernels.clip_rows(raw, 1e3, out)
        assert np.array_equal(out, naive.clip_rows(raw, 1e3).astype(dtype))


def test_one_far_value_is_clipped():
    raw = np.array([[0.0], [1.0]] * 500 + [[1e9]])
    out = _scaled(raw, np.ones(len(raw), np.bool_), np.ones(1, np.bool_), _fresh(1))
    assert out[-1, 0] == LIMIT


@given(_tables(), st.booleans())
def test_scale(table, standardize):
    raw, learn, is_number = table
    moments, out = _fresh(raw.shape[1]), np.full((len(raw) + 3, raw.shape[1] + 2), 7.0)
    kernels.scale(raw, learn, standardize, LIMIT, is_number, *moments, 2, out)
    assert (np.delete(out, np.s_[2:-1], axis=0) == 7).all()
    own = out[2:-1]
    exact = naive.scale(raw, learn, standardize, LIMIT, is_number)[0]
    assert np.allclose(own[:, : raw.shape[1]], exact, atol=1e-6, rtol=1e-6)
    assert (own[:, raw.shape[1] :] == 0).all()
    if not standardize:
        assert not np.any(moments)


numbers = st.lists(st.one_of(st.floats(-1e6, 1e6), st.integers(-3, 3).map(float), st.just(math.nan)), max_size=30)


@given(numbers, numbers)
def test_standardise(earlier, y):
    """In two calls, of which the second goes on from the moments of the first."""
    moments, came = np.zeros(3), []
    for part in (earlier, y):
        out, before = np.full(len(part), 7.0), np.full((len(part), 2), np.nan)
        kernels.standardise(np.array(part), moments, out, before)
        exact, exact_before, came = naive.standardise(part, came)
        assert np.isnan(out).tolist() == np.isnan(part).tolist()
        # Where deviations are beside their mean as rounding is, rounding is all there is to standardise by.
        size = max(map(abs, came), default=0.0)
        assert np.allclose(before, np.reshape(exact_before, (-1, 2)), rtol=1e-9, atol=1e-7 * size)
        now = [deviation for _, deviation in [*exact_before, (0, np.std(came) if came else 0)]][1:]
        clear = [d > 1e-4 * size for d in now]
        assert np.allclose(out[clear], np.array(exact)[clear], rtol=1e-6, atol=1e-6, equal_nan=True)
    assert moments[0] == len(came)


def test_the_same_number_again_and_again_is_0():
    out = np.full(4, np.nan)
    kernels.standardise(np.full(4, 0.1), np.zeros(3), out, np.empty((4, 2)))
    assert out.tolist() == [0, 0, 0, 0]
