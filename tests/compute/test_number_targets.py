"""What is known of targets that are numbers, against the twins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import number_pass as kernels
from streamkernel.compute.moments import SIZE
from streamkernel.compute.number_pass import MAGNITUDES, AsinhStatistics
from tests import naive
from tests.naive.number_targets import ring

NUMBERS = st.floats(-1e6, 1e6).map(lambda y: round(y, 3))


def _fresh():
    return AsinhStatistics(np.zeros(SIZE), np.zeros(1 + MAGNITUDES), np.zeros(2))


def _learn(targets, asinh=None):
    asinh = asinh or _fresh()
    for y in targets:
        kernels.keep_magnitude(asinh.magnitudes, y)
        kernels.take_asinh(asinh, y)
    return asinh


@given(st.lists(NUMBERS, max_size=40), NUMBERS, st.floats(-4, 4), st.floats(0, 1e3))
def test_targets_are_taken_as_the_twin_takes_them(targets, y, score, margin):
    asinh, twin = _fresh(), naive.Asinh()
    for target in [*targets, y]:
        kernels.keep_magnitude(asinh.magnitudes, target)
        naive.keep_magnitude(twin, target)
        assert kernels.magnitude_of(asinh.magnitudes) == twin.c
        assert kernels.take_asinh(asinh, target) == pytest.approx(naive.take_asinh(twin, target), rel=1e-6, abs=1e-6)
    moments, magnitudes, bounds = twin.numbers
    np.testing.assert_allclose(asinh.moments, moments, rtol=1e-6, atol=1e-6)
    assert asinh.magnitudes.tolist() == magnitudes
    assert asinh.bounds.tolist() == bounds
    expected = naive.from_asinh(twin, score, margin)
    assert kernels.from_asinh(asinh, score, margin) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    kernels.forget_asinh(asinh)
    naive.forget_asinh(twin)
    assert [part.tolist() for part in asinh] == [list(part) for part in twin.numbers]


@given(st.lists(st.tuples(NUMBERS, st.sampled_from([0.0, 1e-3, 1.0, 7.0])), max_size=30))
def test_targets_taken_together_are_as_one_by_one(records):
    targets, weights = np.array(records).reshape(-1, 2).T
    asinh, twin, out = _learn([3.0, 5.0]), naive.Asinh(), np.full(len(targets), np.nan)
    for y in (3.0, 5.0):
        naive.keep_magnitude(twin, y)
        naive.take_asinh(twin, y)
    kernels.take_all_asinh(targets, weights, asinh, out)
    np.testing.assert_allclose(out, naive.take_all_asinh(targets, weights, twin), rtol=1e-6, atol=1e-6)
    assert asinh.magnitudes.tolist() == twin.numbers[1]
    assert asinh.bounds.tolist() == twin.bounds


@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("score", [-1e300, -50.0, 0.0, 0.7, 50.0, 1e300])
def test_a_prediction_stays_near_what_was_seen(unit, score):
    targets = np.random.default_rng(1).normal(size=50) * unit
    prediction = kernels.from_asinh(_learn(targets), score, 0.5 * unit)
    assert targets.min() - 0.5 * unit <= prediction <= targets.max() + 0.5 * unit
    assert math.isfinite(kernels.from_asinh(_learn([1e-320, 1e100]), score, unit))


@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e100])
def test_scores_mean_the_targets_they_come_from(unit):
    """What is standardized by moments that then stay comes back."""
    targets = np.sort(np.random.default_rng(2).normal(size=200)) * unit
    asinh = _learn(targets)
    c, scale = kernels.magnitude_of(asinh.magnitudes), asinh.moments
    scores = (np.arcsinh(targets / c) - scale[1]) / np.sqrt(scale[2] / scale[0])
    back = [kernels.from_asinh(asinh, score, unit) for score in scores]
    np.testing.assert_allclose(back, targets, rtol=1e-9, atol=1e-12 * unit)


def test_at_and_follow_median():
    rng = np.random.default_rng(0)
    median, twin = np.zeros(kernels.MEDIAN_SIZE), [0.0] * kernels.MEDIAN_SIZE
    for error in rng.normal(size=200) ** 3 + 1:
        kernels.follow_median(median, error, 0.7, 2.0)
        twin = naive.follow_median(twin, error, 0.7, 2.0)
        np.testing.assert_allclose(median, twin, rtol=1e-12, atol=1e-12)
        assert kernels.at_median(median, 5.0) == pytest.approx(naive.at_median(twin, 5.0), rel=1e-12)


def test_the_shift_comes_to_the_median_of_the_errors():
    errors = np.random.default_rng(1).exponential(size=20_000)
    median, shifts = np.zeros(kernels.MEDIAN_SIZE), []
    for error in errors:
        kernels.follow_median(median, error, 1.0, 2.0)
        shifts.append(median[kernels.SHIFT])
    assert np.mean(shifts[5_000:]) == pytest.approx(np.median(errors), abs=0.02)
    # And there it is taken almost whole.
    assert kernels.at_median(median, 0.0) > 0.9 * median[kernels.SHIFT]


def test_keep_residual():
    residuals, errors = np.zeros(1 + kernels.RESIDUALS), []
    for error in np.random.default_rng(0).normal(size=2 * kernels.RESIDUALS + 7):
        kernels.keep_residual(residuals, error)
        naive.keep_residual(errors, error)
        assert residuals.tolist() == ring(errors)
    assert sorted(residuals[1:]) == sorted(errors[-kernels.RESIDUALS :])
