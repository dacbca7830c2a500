"""Running moments against the mean and deviation of everything seen so far."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import moments as kernels
from streamkernel.compute.moments import standardize_columns
from tests import naive

LIMIT = 10.0


@st.composite
def _tables(draw):
    n, d = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    # Of 24 bits, so that the twin's mean of equal numbers is exact, and no deviation is lost in the rounding of a mean.
    number = st.floats(-1e6, 1e6, width=32)
    value = st.one_of(st.just(math.nan), st.sampled_from([0.0, 1.0, 5.5]), number)
    raw = draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n))
    learn = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(raw), np.array(learn), np.array(draw(st.lists(st.booleans(), min_size=d, max_size=d)))


def _scaled(raw, learn, is_number, moments):
    out = np.empty(raw.shape)
    kernels.scale_rows(raw, learn, is_number, moments, LIMIT, out)
    return out


def _fresh(d):
    return np.zeros((d, kernels.SIZE))


@given(_tables())
def test_scale_rows(table):
    raw, learn, is_number = table
    moments = _fresh(raw.shape[1])
    exact, observed = naive.scale_rows(raw, learn, is_number, LIMIT)
    # A deviation much smaller than the mean amplifies the rounding of both.
    assert np.allclose(_scaled(raw, learn, is_number, moments), exact, atol=1e-6, rtol=1e-6)
    seen = (~np.isnan(raw[learn])).sum(axis=0)
    counted = [[0, 0, 0, 0, n, 0, 0, 0] for n in seen]  # of an indicator
    exact_moments = np.where(is_number[:, None], [own.numbers for own in observed], counted)
    assert np.allclose(moments, exact_moments, rtol=1e-6, atol=1e-3)


@given(_tables())
def test_clip_rows(table):
    raw, learn, _ = table
    for dtype in (np.float32, np.float64):
        out, moments = np.empty(raw.shape, dtype), _fresh(raw.shape[1])
        kernels.clip_rows(raw, learn, moments, 1e3, out)
        assert np.array_equal(out, naive.clip_rows(raw, 1e3).astype(dtype))
        assert np.allclose(moments, naive.plain_moments(raw, learn, 1e3), rtol=1e-6, atol=1e-6)


def test_one_far_value_is_clipped():
    raw = np.array([[0.0], [1.0]] * 500 + [[1e9]])
    out = _scaled(raw, np.ones(len(raw), np.bool_), np.ones(1, np.bool_), _fresh(1))
    assert out[-1, 0] == LIMIT


@given(_tables(), st.booleans())
def test_scale(table, standardize):
    raw, learn, is_number = table
    moments, out = _fresh(raw.shape[1]), np.full((len(raw) + 3, raw.shape[1] + 2), 7.0)
    kernels.scale(raw, learn, standardize, LIMIT, is_number, moments, 2, out)
    assert (np.delete(out, np.s_[2:-1], axis=0) == 7).all()
    own = out[2:-1]
    exact = naive.scale(raw, learn, standardize, LIMIT, is_number)[0]
    assert np.allclose(own[:, : raw.shape[1]], exact, atol=1e-6, rtol=1e-6)
    assert (own[:, raw.shape[1] :] == 0).all()
    if not standardize:
        assert np.allclose(moments, naive.plain_moments(raw, learn, LIMIT), rtol=1e-6, atol=1e-6)


#: The square of a smaller number has few digits, or none; another test has these.
floats = st.floats(-1e6, 1e6).map(lambda number: number if abs(number) > 1e-150 else 0.0)
numbers = st.lists(st.one_of(floats, st.integers(-3, 3).map(float), st.just(math.nan)), max_size=30)


@given(numbers, numbers)
def test_standardize(earlier, y):
    """In two calls, of which the second goes on from the moments of the first."""
    moments, twins = np.zeros(kernels.SIZE), naive.Moments(naive.TARGETS)
    came = np.array([*earlier, *y])
    size = np.nanmax(np.abs(came), initial=0.0)
    for part in (earlier, y):
        out, before = np.full(len(part), 7.0), np.full((len(part), 2), np.nan)
        kernels.standardize(np.array(part), moments, out, before)
        exact, exact_before = naive.standardize(part, twins)
        assert np.isnan(out).tolist() == np.isnan(part).tolist()
        # Where deviations are beside their mean as rounding is, rounding is all there is to standardize by.
        assert np.allclose(before, np.reshape(exact_before, (-1, 2)), rtol=1e-9, atol=1e-7 * size)
        now = [deviation for _, deviation in [*exact_before, (0, twins.deviation)]][1:]
        clear = [d > 1e-4 * size for d in now]
        assert np.allclose(out[clear], np.array(exact)[clear], rtol=1e-6, atol=1e-6, equal_nan=True)
    assert moments[kernels.SEEN] == np.isfinite(came).sum()


@given(st.lists(st.tuples(*3 * [st.one_of(st.floats(-9, 9).map(round), st.just(math.nan))]), min_size=1, max_size=9))
def test_standardize_columns(rows):
    y, moments = np.array(rows, np.float64), np.zeros((3, kernels.SIZE))
    out, before = np.full(y.shape, 7.0), np.full((*y.shape, 2), 7.0)
    standardize_columns(y, moments, out, before)
    exact, exact_before = naive.standardize_columns(rows, [naive.Moments(naive.TARGETS) for _ in range(3)])
    assert np.allclose(before, exact_before, atol=1e-6)
    assert np.allclose(out, exact, atol=1e-5, equal_nan=True)


FIRST_TWO, EVERY_100 = (0, 1), tuple(range(0, 2_000, 100))


@pytest.mark.parametrize("size", [30, 100, 300, 1e3, 1e6, 1e42, 1e100, 1e300])
@pytest.mark.parametrize("places", [FIRST_TWO, EVERY_100, tuple(range(20)), tuple(range(1_500, 1_520))])
def test_one_percent_of_outliers_anywhere_hardly_moves_the_moments(places, size):
    values = np.random.default_rng(0).normal(5, 3, size=2_000)
    values[list(places)] = size
    moments = _fresh(1)
    out = _scaled(values[:, None], np.ones(2_000, np.bool_), np.ones(1, np.bool_), moments)
    assert np.isfinite(out).all()
    assert kernels.are_moments(moments)
    assert moments[0, kernels.MEAN] == pytest.approx(5, abs=1)
    assert kernels.deviation(moments[0]) == pytest.approx(3, rel=0.3)


def test_the_twin_agrees_about_targets():
    y = np.random.default_rng(1).normal(size=700)
    y[[50, 51, 300]] = [-90, 1e3, 1e5]
    y[400:] *= 1e-3
    moments, twin, out = np.zeros(kernels.SIZE), naive.Moments(naive.TARGETS), np.empty(700)
    kernels.standardize(y, moments, out, np.empty((700, 2)))
    assert np.allclose(out, naive.standardize(y, twin)[0], atol=1e-6, rtol=1e-6)
    assert np.allclose(moments, twin.numbers, rtol=1e-6)


def test_a_change_of_scale_is_no_outlier():
    """Also after very many values that were all alike but for rounding."""
    rng = np.random.default_rng(0)
    for before in (rng.normal(size=5_000), np.full(5_000, 0.1), np.full(5_000, 0.1) + 1e-17 * rng.normal(size=5_000)):
        values = np.concatenate([before, rng.normal(50, 1e3, size=2_000)])[:, None]
        moments = _fresh(1)
        out = _scaled(values, np.ones(7_000, np.bool_), np.ones(1, np.bool_), moments)
        # As plain moments would be: 2,000 of 7,000.
        assert kernels.deviation(moments[0]) == pytest.approx(1e3 * np.sqrt(2 / 7), rel=0.2)
        assert (np.abs(out[-1_000:]) < LIMIT).all()


def test_values_too_close_to_each_other_for_their_squares():
    """Also those whose variance rounds to 0 where their squares did not."""
    for size in (5e-324, 1e-170, 3e-162, 1e-160):
        raw = np.random.default_rng(0).normal(size=(50, 1)) * size
        assert np.isfinite(_scaled(raw, np.ones(50, np.bool_), np.ones(1, np.bool_), _fresh(1))).all()
