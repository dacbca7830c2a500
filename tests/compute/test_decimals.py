"""Decimal numbers become the floats that Python makes of them, to the last bit."""

import math
import struct
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamkernel.compute import decimals as kernels
from tests import naive

POWERS = kernels.powers_of_five()
WORDS = st.integers(0, 2**64 - 1)
DIGITS = st.text("0123456789", max_size=30)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
MANY = settings(max_examples=300)


def _halfway(number):
    """The decimal number just between two floats, all digits of it."""
    between = (Fraction(number) + Fraction(math.nextafter(number, math.inf))) / 2
    places = between.denominator.bit_length() - 1
    digits = str(abs(between.numerator) * 5**places).rjust(places + 1, "0")
    return f"{'-' if between < 0 else ''}{digits[: len(digits) - places]}.{digits[len(digits) - places :] or 0}"


def _beside(number):
    """Numbers at and beside the middle of two floats, cut to any length: the hard ones."""
    return st.tuples(st.just(_halfway(number)), st.integers(1, 30), st.sampled_from(["", "1", "00001", "9"])).map(
        lambda made: made[0][: made[1]].rstrip(".") + ("" if "." not in made[0][: made[1]] else made[2])
    )


NUMBERS = st.one_of(
    FLOATS.map(repr),
    st.builds("{}{}.{}{}".format, st.sampled_from(["", "-", "+"]), DIGITS, DIGITS, st.sampled_from(["", "e5", "E-3"])),
    st.builds("{}e{}".format, WORDS, st.integers(-360, 320)),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(-1e18, 1e18).flatmap(_beside),
    st.builds("{}e{}".format, st.integers(0, 99), st.integers(-330, -305)),
    st.text("0123456789+-.eE ", max_size=12),
)


def _memory(text):
    """Bytes with eight before them, and where they begin and end."""
    held = np.frombuffer(b"\xff" * 8 + text + b"9" * 8, np.uint8)
    at = held.ctypes.data + 8
    return held, at, at + len(text)


def _same(one, other):
    return struct.pack("d", one) == struct.pack("d", other) or (math.isnan(one) and math.isnan(other))


def _call(kernel, text, *rest):
    held, at, end = _memory(text)
    where, value = kernel(at, end, *rest)
    assert held is not None
    return where - at, value


@numba.njit
def _of_words(a, b):
    return kernels.high_product(a, b), kernels.leading_zeros(b), kernels.first_byte(b)


@given(WORDS, WORDS.filter(bool))
def test_words(a, b):
    expected = naive.high_product(a, b), naive.leading_zeros(b), naive.first_byte(b)
    assert _of_words(np.uint64(a), np.uint64(b)) == expected


@given(st.binary(max_size=20), st.integers(0, 20))
def test_word_at(data, at):
    at = min(at, len(data))
    held, start, end = _memory(data)
    assert int(kernels.word_at(start + at, end)) == naive.word_at(data, at)
    assert kernels.is_next(start + at, end, 48) == naive.is_next(data, at, 48)
    assert len(held) == len(data) + 16


@MANY
@given(WORDS, st.integers(-400, 400))
@example(2**64 - 1, 289)
@example(1, -400)
@example(9007199254740993, 0)
def test_nearest_float(w, q):
    value = kernels.nearest_float(np.uint64(w), q, POWERS.ctypes.data)
    assert _same(value, naive.nearest_float(w, q))


@MANY
@given(DIGITS | st.text("0123456789/:x ", max_size=20), WORDS)
def test_read_digits(text, w):
    n, value = _call(kernels.read_digits, text.encode(), np.uint64(w))
    assert (n, int(value)) == naive.read_digits(text.encode(), w)


@given(st.text("0123456789", min_size=8, max_size=8))
def test_of_eight(digits):
    assert kernels.of_eight(np.uint64(naive.word_at(digits.encode(), 0) ^ 0x3030303030303030)) == naive.of_eight(digits)


@MANY
@given(st.text("0123456789", min_size=1, max_size=40), st.integers(-340, 300))
def test_nearest_of_many(digits, q):
    text = digits[:3] + "." + digits[3:]
    held, at, end = _memory(text.encode())
    assert _same(kernels.nearest_of_many(at, end, q, POWERS.ctypes.data), naive.nearest_of_many(text.encode(), q))
    assert held is not None


@settings(max_examples=3000)
@given(NUMBERS, st.sampled_from(["", ",", " ", "}", "x", "e", "."]), st.booleans())
@example("-0", "", True)
@example("9223372036854775807", "", True)
@example("9223372036854775808", "", True)
@example("0.000000000000000000012345678901234567", "", True)
@example("1e9999999", "", False)
def test_read_number(text, after, strict):
    text = (text + after).encode()
    n, value = _call(kernels.read_number, text, strict, POWERS.ctypes.data)
    expected = naive.read_number(text, strict)
    assert n == expected[0]
    assert _same(value, expected[1]), (text, value, expected)
    if not math.isnan(value):
        assert _same(value, float(text[:n]))


@pytest.mark.parametrize("strict", [False, True])
def test_almost_all_floats_are_read(strict):
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 2**64, 20_000, np.uint64).view(np.float64)
    for number in numbers[np.isfinite(numbers)].tolist() + rng.normal(size=20_000).tolist():
        text = repr(number).encode()
        n, value = _call(kernels.read_number, text, strict, POWERS.ctypes.data)
        assert n == len(text)
        assert value == number


def test_powers_of_five():
    for q, (high, low) in enumerate(POWERS.tolist(), start=-342):
        number, power = high << 64 | low, Fraction(5) ** q
        scale = power.numerator.bit_length() - power.denominator.bit_length() - 128
        # The first bits of 5^q: of powers of two, one of these is the next.
        errors = [number - power / Fraction(2) ** (scale + more) for more in (0, 1)]
        assert number >> 127 == 1
        assert min(errors, key=abs) == 0 or -1 < min(errors, key=abs) <= 1
