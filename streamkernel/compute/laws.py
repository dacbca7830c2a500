"""Random numbers of other laws than the Gaussian one, each a pure function of (word, key): drawn, never stored.

A stream of uniform numbers belongs to each pair of a word and a key: 64 bits from mixing both and a counter. From it a
law's number is taken by its inverse distribution function, or by rejection. Logarithm, exponential and sine are written
out in operations that IEEE 754 rounds in one way, so that the numbers are the same on every processor.
"""

import math
from typing import Any

import numpy as np

from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import Array, jit

#: Laws of `draws`.
CAUCHY, LAPLACE, SECH, EXPONENTIAL, LEVY, JENSEN_SHANNON = range(6)
#: Draws times their scale are cut here: where float32 projections of any input stay finite.
LARGEST_DRAW = 1e16

_STEP = np.uint64(0x9E3779B97F4A7C15)
_KEYED = np.uint64(0xA0761D6478BD642F)
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@jit
def stream(word: Any, key: Any) -> Any:
    """The first state, a uint64, of the stream of a word and a key."""
    return mix64(np.uint64(word) ^ mix64(np.uint64(key) ^ _KEYED))


@jit
def bits(state: Any, counter: int) -> Any:
    """64 random bits of a stream."""
    return mix64(np.uint64(state) + np.uint64(counter + 1) * _STEP)


@jit
def uniform(state: Any, counter: int) -> Any:
    """A number in (0, 1), never 0 or 1: an odd multiple of 2^-53."""
    return (np.float64(bits(state, counter) >> np.uint64(12)) + 0.5) * 2.0**-52


@jit
def log(x: Any) -> Any:
    """The natural logarithm of a positive number, to some 1e-16 of 1."""
    m, e = math.frexp(x)
    if m < 0.7071067811865476:
        m *= 2.0
        e -= 1
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    total = 0.0
    for k in range(23, 0, -2):
        total = total * q + 1.0 / k
    return e * _LOG2_HIGH + (e * _LOG2_LOW + 2.0 * s * total)


@jit
def exp(x: Any) -> Any:
    """The exponential; 0 below -745 and infinite above 709."""
    if x < -745.0:
        return 0.0
    if x > 709.0:
        return np.inf
    k = np.rint(x / 0.6931471805599453)
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
    total = 1.0
    for i in range(14, 0, -1):
        total = 1.0 + total * r / i
    return math.ldexp(total, int(k))


@jit
def _sine(y: Any) -> Any:
    """sin(y) for |y| <= pi / 4, by its series."""
    q = y * y
    total = 1.0
    for k in range(18, 1, -2):
        total = 1.0 - total * q / (k * (k + 1))
    return y * total


@jit
def _cosine(y: Any) -> Any:
    """cos(y) for |y| <= pi / 4, by its series."""
    q = y * y
    total = 1.0
    for k in range(18, 1, -2):
        total = 1.0 - total * q / (k * (k - 1))
    return total


@jit
def sin_half_turns(w: Any) -> Any:
    """sin(pi w) for |w| <= 1."""
    a = abs(w)
    if a > 0.5:
        a = 1.0 - a
    value = _sine(math.pi * a) if a <= 0.25 else _cosine(math.pi * (0.5 - a))
    return value if w >= 0 else -value


@jit
def _tangent(w: Any) -> Any:
    """tan(pi w) for |w| < .5."""
    return sin_half_turns(w) / sin_half_turns(0.5 - abs(w))


@jit
def _sech(state: Any, counter: int) -> Any:
    """A draw of the law sech(pi omega)."""
    size = -log(_tangent(0.25 * uniform(state, counter))) / math.pi
    return size if bits(state, counter + 1) >> np.uint64(63) else -size


@jit
def _normal(state: Any, counter: int) -> Any:
    """A standard normal number, by Box and Muller."""
    radius = math.sqrt(-2.0 * log(uniform(state, counter)))
    return radius * sin_half_turns(2.0 * uniform(state, counter + 1) - 1.0)


@jit
def _jensen_shannon(state: Any) -> Any:
    """A draw of the law 2 sech(pi omega) / (log 4 (1 + 4 omega^2)), by rejection: seven of ten are taken."""
    counter = 0
    while True:
        omega = _sech(state, counter)
        if uniform(state, counter + 2) * (1.0 + 4.0 * omega * omega) < 1.0:
            return omega
        counter += 3


@jit
def _gamma(state: Any, shape: float) -> Any:
    """A draw of the gamma law of a shape and scale 1, by Marsaglia and Tsang's rejection."""
    boosted = shape if shape >= 1.0 else shape + 1.0
    d = boosted - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    counter = 1
    while True:
        z = _normal(state, counter)
        v = 1.0 + c * z
        if v > 0.0:
            v = v * v * v
            if log(uniform(state, counter + 2)) < 0.5 * z * z + d - d * v + d * log(v):
                break
        counter += 3
    if shape < 1.0:
        return d * v * exp(log(uniform(state, 0)) / shape)
    return d * v


@jit
def _draw(law: int, state: Any) -> Any:
    if law == CAUCHY:
        return _tangent(uniform(state, 0) - 0.5)
    if law == LAPLACE:
        size = -log(uniform(state, 0))
        return size if bits(state, 1) >> np.uint64(63) else -size
    if law == SECH:
        return _sech(state, 0)
    if law == EXPONENTIAL:
        return -log(uniform(state, 0))
    if law == LEVY:
        z = _normal(state, 0)
        return 1.0 / (z * z) if abs(z) > 1e-150 else np.inf
    return _jensen_shannon(state)


@jit
def draws(law: int, words: Array, keys: Array, scale: float, out: Array) -> None:
    """Draw a number of a law for every (input, feature), times `scale`.

    - law: `CAUCHY`, `LAPLACE`, `SECH`, `EXPONENTIAL` or `LEVY` (each of scale 1), or `JENSEN_SHANNON`.
    - words: The features' words, uint64 of shape (m,).
    - keys: The inputs' keys, uint64 of shape (d,).
    - scale: Multiplies each draw.
    - out: Filled; shape (d, m), float32 or float64, cut at `LARGEST_DRAW` either way.
    """
    for j in range(keys.shape[0]):
        for i in range(words.shape[0]):
            value = _draw(law, stream(words[i], keys[j])) * scale
            out[j, i] = min(max(value, -LARGEST_DRAW), LARGEST_DRAW)


@jit
def gammas(words: Array, key: Any, shape: float, out: Array) -> None:
    """Draw a number of the gamma law of a shape and scale 1 for every word; float64, at least 1e-300."""
    for i in range(words.shape[0]):
        out[i] = max(_gamma(stream(words[i], key), shape), 1e-300)


@jit
def uniforms(words: Array, key: Any, out: Array) -> None:
    """Draw a number in (0, 1) for every word, float64."""
    for i in range(words.shape[0]):
        out[i] = uniform(stream(words[i], key), 0)


@jit
def signs(words: Array, keys: Array, out: Array) -> None:
    """Draw 1 or -1, as likely, for every (input, feature); shape (d, m)."""
    for j in range(keys.shape[0]):
        for i in range(words.shape[0]):
            out[j, i] = 1.0 if bits(stream(words[i], keys[j]), 0) >> np.uint64(63) else -1.0


@jit
def salted(words: Array, salt: int, out: Array) -> None:
    """Other words, one for each, which are as good as drawn by themselves; uint64 of the shape (m,)."""
    for i in range(words.shape[0]):
        out[i] = mix64(words[i] ^ mix64(np.uint64(salt) * _STEP + _KEYED))


#: Products are cut here as they are formed.
_LARGEST = 1e150
#: The key of a constant next to the inputs.
_CONSTANT = np.uint64(0x636F6E7374616E74)


@jit
def sign_products(X: Array, words: Array, keys: Array, orders: Array, weights: Array, most: float, out: Array) -> None:
    """Products of sums of the inputs with random signs.

    - X: Rows, shape (n, d).
    - words: The features' words, uint64 of shape (m,).
    - keys: The inputs' keys, uint64 of shape (d,).
    - orders: The number of sums that each feature multiplies, at most 64; int64 of shape (m,).
    - weights: What each product is multiplied by, float64 of shape (m,).
    - most: Where features are cut either way.
    - out: Filled; shape (n, m).
    """
    signs = np.empty(keys.shape[0], np.uint64)
    for i in range(words.shape[0]):
        for j in range(keys.shape[0]):
            signs[j] = bits(stream(words[i], keys[j]), 0)
        for r in range(X.shape[0]):
            product = weights[i]
            for k in range(orders[i]):
                total = 0.0
                for j in range(keys.shape[0]):
                    x = np.float64(X[r, j])
                    total += x if (signs[j] >> np.uint64(k)) & np.uint64(1) else -x
                product = min(max(product * total, -_LARGEST), _LARGEST)
            out[r, i] = min(max(product, -most), most)


@jit
def count_sketches(X: Array, words: Array, keys: Array, constant: float, out: Array) -> None:
    """Count sketches of rows: each input is added, with a random sign, to a random one of F numbers.

    - X: Rows, shape (n, d).
    - words: The blocks' words, uint64 of shape (blocks,).
    - keys: The inputs' keys, uint64 of shape (d,).
    - constant: One more input of every row.
    - out: Filled; float64 of shape (n, blocks, degree, F), independent sketches for each block and degree.
    """
    F = np.uint64(out.shape[3])
    out[:] = 0.0
    for b in range(words.shape[0]):
        for j in range(keys.shape[0] + 1):
            known = j < keys.shape[0]
            state = stream(words[b], keys[j] if known else _CONSTANT)
            for k in range(out.shape[2]):
                word = bits(state, k)
                place = np.int64((word >> np.uint64(1)) % F)
                sign = 1.0 if word & np.uint64(1) else -1.0
                for r in range(X.shape[0]):
                    out[r, b, k, place] += sign * (np.float64(X[r, j]) if known else constant)


@jit
def multiply_spectra(spectra: Array, out: Array) -> None:
    """The products over the second-last axis of complex numbers, (n, blocks, degree, H); out is (n, blocks, H)."""
    for r in range(spectra.shape[0]):
        for b in range(spectra.shape[1]):
            for i in range(spectra.shape[3]):
                product = spectra[r, b, 0, i]
                for k in range(1, spectra.shape[2]):
                    product = product * spectra[r, b, k, i]
                out[r, b, i] = product
