"""Gaussian frequencies as a pure function of (seed, block, feature, input): drawn, never stored.

The law (popcount-CLT) is part of every checkpoint. A 64-bit word of the feature and the 64-bit key of the input are
mixed into 64 bits; 48 of them are counted (a binomial), two bytes, added, dither the count into a continuous variable
`x`, and `x (a + b x^2)` (Cornish-Fisher) gives it variance 1 and a fourth cumulant of 0: its characteristic function is
within 1.5e-4 of the Gaussian's up to 17 bandwidths, against 3.7e-3 without the cubic, and within 2e-3 beyond, where the
count's steps come back, against 3e-2 with a dither of one step. Integers and correctly rounded float32 products only,
so the bits are the same on every CPU.
"""

from typing import Any

import numpy as np

from streamkernel.compute.intrinsics import popcount, wide
from streamkernel.compute.jit import Array, jit

# numba promotes 32-bit integer arithmetic to 64 bits, which would halve the vector lanes: every operation is cast back.
_u32 = np.uint32
_C1 = np.uint32(0x9E3779B1)
_C2 = np.uint32(0x85EBCA77)
_CENTER = np.int32(24 * 256 + 255)
# Solves variance = 1 and excess kurtosis = 0 for 48 counted bits and the two bytes (tests/compute/test_gaussians.py),
# for a count in units of 2^-8, which powers of two change exactly.
_A = np.float32(0.28518261886330426 * 2.0**-8)
_B = np.float32(4.1825692287907671e-05 * 2.0**-24)
#: The deviation of a count: of 48 bits and of two bytes, in units of 2^-8.
COUNTED_DEVIATION = float(np.sqrt(48 / 4 * 2.0**16 + 2 * (2.0**16 - 1) / 12))


@jit
def mix64(word: Any) -> Any:
    """The finaliser of splitmix64: a bijection of 64-bit words that looks random."""
    word = np.uint64(word)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@jit
def random_signs(word: Any, n: int, m: int) -> Array:
    """1 and -1, as likely, float64 of shape (n, m), from a uint64; n at most 64."""
    signs = np.empty((n, m))
    for c in range(m):
        bits = mix64(word + np.uint64(c))
        for s in range(n):
            signs[s, c] = 1.0 if (bits >> np.uint64(s)) & np.uint64(1) else -1.0
    return signs


@jit
def feature_words(seed: Any, first: int, words: Array) -> None:
    """Fill `words` (uint64) with the words of the features `first`, `first + 1`, ... of the stream `seed`."""
    base = mix64(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    for i in range(words.shape[0]):
        words[i] = mix64(base + np.uint64(first + i) * np.uint64(0x9E3779B97F4A7C15))


@jit
def counted(low: Any, high: Any) -> Any:
    """Two uint32, mixed, become a count of bits less its mean, dithered: a float32 in units of 2^-8 of a bit."""
    x = _u32(low * _C1)
    y = _u32(high ^ _u32(x ^ _u32(x >> _u32(15))))
    y = _u32(y * _C2)
    x = _u32(x ^ _u32(y ^ _u32(y >> _u32(13))))
    count = _u32(popcount(x) + popcount(_u32(y >> _u32(16))))
    dither = _u32(_u32(y & _u32(0xFF)) + _u32(_u32(y >> _u32(8)) & _u32(0xFF)))
    return np.float32(np.int32(np.int32(_u32(_u32(count << _u32(8)) + dither)) - _CENTER))


@jit
def normal(low: Any, high: Any) -> Any:
    """The law: two uint32 become a standard normal float32."""
    z = counted(low, high)
    return np.float32(z * np.float32(_A + np.float32(_B * np.float32(z * z))))


@jit
def gaussians(words: Array, keys: Array, scale: float, out: Array) -> None:
    """Draw the standard normal of every (input, feature), times `scale`.

    Parameters
    ----------
    words
        The features' words, uint64 of shape (m,).
    keys
        The inputs' keys, uint64 of shape (d,).
    scale
        Multiplies each draw, in the dtype of `out`.
    out
        Filled; shape (d, m), float32 or float64.
    """
    wide()
    m = words.shape[0]
    factor = out.dtype.type(scale)
    low = np.empty(m, np.uint32)
    high = np.empty(m, np.uint32)
    for i in range(m):
        low[i] = _u32(words[i] & np.uint64(0xFFFFFFFF))
        high[i] = _u32(words[i] >> np.uint64(32))
    for j in range(keys.shape[0]):
        key_low = _u32(keys[j] & np.uint64(0xFFFFFFFF))
        key_high = _u32(keys[j] >> np.uint64(32))
        row = out[j]
        for i in range(m):
            row[i] = normal(_u32(low[i] ^ key_low), _u32(high[i] ^ key_high)) * factor
