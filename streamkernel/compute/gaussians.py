"""Gaussian frequencies as a pure function of (seed, block, feature, input): drawn, never stored.

The law (popcount-CLT) is part of every checkpoint. A 64-bit word of the feature and the 64-bit key of the input are
mixed into 64 bits; 48 of them are counted (a binomial), two bytes, added, dither the count into a continuous variable
`x`, and `x (a + b x^2)` (Cornish-Fisher) gives it variance 1 and a fourth cumulant of 0: its characteristic function is
within 1.5e-4 of the Gaussian's up to 17 bandwidths, against 3.7e-3 without the cubic, and within 2e-3 beyond, where the
count's steps come back, against 3e-2 with a dither of one step. Integers and correctly rounded float32 products only,
so the bits are the same on every CPU.

From the same mixed words come random choices: coordinates, by a generator with a state of one uint64, the inputs that a
feature sees, and the hashes of rows.
"""

from typing import Any

import numpy as np

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.vectors import popcount, wide

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

    - words: The features' words, uint64 of shape (m,).
    - keys: The inputs' keys, uint64 of shape (d,).
    - scale: Multiplies each draw, in the dtype of `out`.
    - out: Filled; shape (d, m), float32 or float64.
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


@jit
def draw_row(state: Array, n: int) -> Any:
    """A number below n, at most 2^32, all as likely: splitmix64's next."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.int64(((mix64(state[0]) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@jit
def draw_blocks(state: Array, count: int, chosen: Array) -> None:
    """Fill `chosen` with numbers from 0 to below `count`, each as likely, whatever the others."""
    for t in range(chosen.shape[0]):
        chosen[t] = draw_row(state, count)


@jit
def draw_subsets(state: Array, pool: Array, chosen: Array) -> None:
    """Fill each row of `chosen` with different elements of the pool, each set of them as likely.

    - state: The generator.
    - pool: Shape (n,): a permutation, which is permuted.
    - chosen: Shape (draws, at most n).
    """
    n = pool.shape[0]
    for t in range(chosen.shape[0]):
        for k in range(chosen.shape[1]):
            other = k + draw_row(state, n - k)
            drawn = pool[other]
            pool[other] = pool[k]
            pool[k] = drawn
            chosen[t, k] = drawn


_FIRST, _SECOND = np.uint64(0x66697273742D696E), np.uint64(0x7365636F6E642D69)


@jit
def place_below(word: Any, n: int) -> Any:
    """A number from 0 to n - 1, each as likely, of a random word; n at most 2^31."""
    return np.int64((mix64(word) >> np.uint64(33)) * np.uint64(n) >> np.uint64(31))


@jit
def restrict(words: Array, sizes: Array, n_inputs: Array, first: int, W: Array) -> None:
    """Let features see few of the inputs, with frequencies so much larger that distances stay as large.

    - words: The features' words, uint64 of shape (m,).
    - sizes: 1 or 2 inputs that a feature sees, or 0 for all; int64 of shape (m,).
    - n_inputs: How many of the first inputs a feature chooses from, int64 of shape (m,). It sees all if `sizes` is no
      smaller.
    - first: The input of the first row of W.
    - W: Frequencies, float32 of shape (d, m); the others' become 0.
    """
    for i in range(words.shape[0]):
        n = n_inputs[i]
        if sizes[i] == 0 or sizes[i] >= n:
            continue
        one = place_below(words[i] ^ _FIRST, n)
        other = one
        if sizes[i] == 2:
            other = place_below(words[i] ^ _SECOND, n - 1)
            other += other >= one
        factor = np.float32(np.sqrt(n / sizes[i]))
        for r in range(W.shape[0]):
            W[r, i] *= factor if first + r == one or first + r == other else np.float32(0)


@jit
def add_row_hashes(values: Array, words: Array, keys: Array, hashes: Array) -> None:
    """Add the hash of each number and its key to its row's; what is NaN adds nothing.

    - values: float64 of shape (n, d).
    - words: The same as uint64, bit by bit.
    - keys: The keys of the columns, uint64 of shape (d,).
    - hashes: Added to, uint64 of shape (n,).
    """
    for r in range(values.shape[0]):
        total = hashes[r]
        for j in range(values.shape[1]):
            if not np.isnan(values[r, j]):
                total += mix64(mix64(words[r, j]) ^ keys[j])
        hashes[r] = total


def row_hashes(values: Array, keys: Array) -> Array:
    """The hash of each row, uint64 of shape (n,): equal of rows with equal numbers under equal keys.

    - values: float64 of shape (n, d); NaN where there is no number.
    - keys: uint64 of shape (d,).

    Examples
    --------
    >>> values, keys = np.array([[1.0, 2.0], [1.0, np.nan]]), np.array([5, 7], np.uint64)
    >>> bool((row_hashes(values, keys) == row_hashes(values[:, ::-1], keys[::-1])).all())
    True

    """
    values = np.ascontiguousarray(values + 0.0)  # -0 is 0
    hashes = np.zeros(len(values), np.uint64)
    add_row_hashes(values, values.view(np.uint64), np.ascontiguousarray(keys), hashes)
    return hashes
