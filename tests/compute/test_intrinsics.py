"""Single instructions, alone and in loops of any length: vector lanes and what is left over beside them agree."""

import math
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite.binding import get_host_cpu_features

from streamkernel.compute.vectors import add_four, copysign, dot_four, last_below, multiply_add, popcount, rint, wide

DTYPES = [np.float32, np.float64]
BITS = {np.float32: np.uint32, np.float64: np.uint64}
BOTH = pytest.mark.parametrize("dtype", DTYPES)
#: Longer than the widest vectors, unrolled four times over.
LONGEST = 70


@numba.njit
def _popcounts(words, out):
    for i in range(words.shape[0]):
        out[i] = popcount(words[i])


@numba.njit
def _rints(x, out):
    for i in range(x.shape[0]):
        out[i] = rint(x[i])


@numba.njit
def _copysigns(sizes, signs, out):
    for i in range(sizes.shape[0]):
        out[i] = copysign(sizes[i], signs[i])


@numba.njit
def _multiply_adds(a, b, c, out):
    for i in range(a.shape[0]):
        out[i] = multiply_add(a[i], b[i], c[i])


def _of_all(loop, *arrays):
    out = np.empty_like(arrays[0])
    loop(*arrays, out)
    return out


def _assert_the_same_at_every_place(loop, *arrays):
    """Each element as it is alone, whatever the length of the loop and wherever it stands."""
    alone = np.concatenate([_of_all(loop, *(x[i : i + 1] for x in arrays)) for i in range(len(arrays[0]))])
    for n in range(1, len(alone) + 1):
        assert _of_all(loop, *(x[:n] for x in arrays)).tobytes() == alone[:n].tobytes()
        assert _of_all(loop, *(x[-n:] for x in arrays)).tobytes() == alone[-n:].tobytes()


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=LONGEST))
def test_popcount(words):
    assert _of_all(_popcounts, np.array(words, np.uint32)).tolist() == [word.bit_count() for word in words]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9))
def test_popcount_of_long_words(words):
    assert _of_all(_popcounts, np.array(words, np.uint64)).tolist() == [word.bit_count() for word in words]


@numba.njit
def _last_below(numbers, at, bound):
    return last_below(numbers, at, bound)


@given(
    st.integers(0, 5),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, math.inf, math.nan]), min_size=16, max_size=16),
    st.sampled_from([0.0, 0.5, 1.0, math.inf]),
)
def test_last_below(at, numbers, bound):
    """Of exactly sixteen, what is before and after them is below, too."""
    found = _last_below(np.array([-1.0] * at + numbers + [-1.0], np.float32), at, np.float32(bound))
    assert found == max((i for i, number in enumerate(numbers) if number < bound), default=-1)


def _whole_and_half(dtype):
    """Where rounding is decided: halves and their neighbors, up to where all numbers are whole, and far beyond."""
    digits = np.finfo(dtype).nmant
    halves = np.concatenate([np.arange(-9, 9) + 0.5, 2.0 ** np.arange(1, digits) + 0.5, [2.0**digits - 0.5]])
    whole = np.array([0.0, 1.0, 2.0**digits, 2.0**digits + 1, 2.0 ** (digits + 1), 1e30])
    extremes = [np.finfo(dtype).max, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal]
    x = np.concatenate([halves, whole, np.asarray(extremes, np.float64)]).astype(dtype)
    x = np.concatenate([x, np.nextafter(x, dtype(0)), np.nextafter(x, dtype(1e35))])
    return np.concatenate([x, -x])


def _assert_rounded(x):
    rounded = _of_all(_rints, x)
    assert rounded.dtype == x.dtype
    for given_, got in zip(x.tolist(), rounded.tolist(), strict=True):
        assert got == round(given_)  # Python's is to the nearest, halves to the even one
        assert math.copysign(1, got) == math.copysign(1, given_)


@BOTH
def test_rint_at_and_beside_every_half(dtype):
    x = _whole_and_half(dtype)
    _assert_rounded(x)
    _assert_the_same_at_every_place(_rints, x[:: len(x) // LONGEST])


@BOTH
def test_rint_of_what_is_no_number(dtype):
    rounded = _of_all(_rints, np.array([math.inf, -math.inf, math.nan], dtype))
    assert rounded[:2].tolist() == [math.inf, -math.inf]
    assert math.isnan(rounded[2])


@BOTH
@given(data=st.data())
def test_copysign(dtype, data):
    """All bits but the first of the one, the first of the other: also of zeros, infinities and NaN."""
    kind = BITS[dtype]
    special = np.array([0.0, math.inf, math.nan, 1.0], dtype).view(kind).tolist()
    width = 8 * dtype().itemsize
    words = st.one_of(
        st.integers(0, 2**width - 1), st.sampled_from(special + [word | 1 << (width - 1) for word in special])
    )
    pairs = data.draw(st.lists(st.tuples(words, words), min_size=1, max_size=LONGEST))
    sizes, signs = (np.array(part, kind).view(dtype) for part in zip(*pairs, strict=True))
    top = 1 << (width - 1)
    expected = [size & (top - 1) | sign & top for size, sign in pairs]
    assert _of_all(_copysigns, sizes, signs).view(kind).tolist() == expected


def _nearest(exact, dtype):
    """The number of a dtype nearest to a fraction, of two the one that ends in a 0."""
    near = dtype(float(exact))  # rounded twice, so perhaps a neighbor of the nearest
    candidates = [np.nextafter(near, dtype(-math.inf)), near, np.nextafter(near, dtype(math.inf))]
    return min(candidates, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(BITS[dtype])) % 2))


def _once_and_twice(a, b, c):
    """a b + c rounded once, and a b rounded before."""
    dtype = type(a)
    a, b, c = (Fraction(float(x)) for x in (a, b, c))
    return _nearest(a * b + c, dtype), _nearest(Fraction(float(_nearest(a * b, dtype))) + c, dtype)


def _assert_multiplied(a, b, c):
    got = _of_all(_multiply_adds, a, b, c)
    expected = [_once_and_twice(*triple) for triple in zip(a, b, c, strict=True)]
    once, twice = (list(values) for values in zip(*expected, strict=True))
    assert list(got) in (once, twice)
    return once != twice


@BOTH
@given(data=st.data())
def test_multiply_add(dtype, data):
    """Of one kind throughout: never one number rounded once and its neighbor twice."""
    anywhere = st.floats(-(2.0**40), 2.0**40, width=8 * dtype().itemsize)
    numbers = st.one_of(anywhere, st.sampled_from([0.0, -0.0, 1.0, 1 / 3, 1e-30, -7.0]))
    triples = data.draw(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8))
    _assert_multiplied(*np.array(triples, dtype).T.copy())


@numba.njit
def _doubled(x, out):
    wide()
    for i in range(x.shape[0]):
        out[i] = x[i] + x[i]


def test_wide():
    """Vectors of sixteen, where the machine has them."""
    for n in range(LONGEST):
        x = np.arange(n, dtype=np.float32)
        assert (_of_all(_doubled, x) == 2 * x).all()
    if not get_host_cpu_features().get("avx512f"):
        pytest.skip("needs an x86-64 processor with AVX-512")
    assert "zmm" in "".join(_doubled.inspect_asm().values())


@numba.njit
def _add_fours(sums, place, terms, start):
    add_four(sums, place, terms, start)


@numba.njit
def _dot_fours(a, b, c, place):
    return dot_four(a, b, c, place)


@pytest.mark.parametrize("place", [0, 3, 8])
def test_four_at_once_are_four_one_by_one(place):
    rng = np.random.default_rng(place)
    a, b, c = rng.normal(size=(3, 4, 3))
    products = (a * b * c).ravel()[place : place + 4]
    assert _dot_fours(a, b, c, place) == (products[0] + products[2]) + (products[1] + products[3])
    expected = a.ravel().copy()
    expected[place : place + 4] += b.ravel()[2:6]
    _add_fours(a, place, b, 2)
    assert a.ravel().tolist() == expected.tolist()
