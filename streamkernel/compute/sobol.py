"""Scrambled Sobol numbers, and the quantiles of laws at them: the same from a seed, on every processor.

The numbers of one input fill (0, 1) evenly, and those of the first inputs together fill the cube: averages over them
have a smaller error than over independent numbers. Nested uniform (Owen) scrambling keeps this, and makes each number
uniform by itself.
"""

from typing import Any

import numpy as np

from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.laws import LARGEST_DRAW, log, sin_half_turns

#: Laws of `quantiles`.
NORMAL, CAUCHY, LAPLACE = range(3)
#: Bits of a number.
BITS = 32
#: Primitive polynomials up to this degree give 53 inputs their numbers; far beyond, nothing fills the cube.
_DEGREE = 8
_STEP = np.uint64(0x9E3779B97F4A7C15)


def directions() -> Array:
    """The direction numbers of Sobol's sequence, uint64 of shape (places, 32).

    The first place has van der Corput's, each further one those of a primitive polynomial of its own over GF(2), whose
    first numbers, any odd ones, are drawn.
    """
    rows = [[1 << (BITS - k) for k in range(1, BITS + 1)]]
    for place, (degree, inner) in enumerate(_polynomials(), start=1):
        m = [int(mix64(np.uint64(place * 64 + k))) % 2**k | 1 for k in range(degree)]
        for k in range(degree, BITS):
            new = m[k - degree] ^ (m[k - degree] << degree)
            for i in range(1, degree):
                if inner >> (degree - 1 - i) & 1:
                    new ^= m[k - i] << i
            m.append(new)
        rows.append([number << (BITS - 1 - k) for k, number in enumerate(m)])
    return np.array(rows, np.uint64)


def _polynomials() -> list[tuple[int, int]]:
    """The primitive polynomials over GF(2) in their order: degree, and the coefficients between first and last."""
    return [
        (degree, inner)
        for degree in range(1, _DEGREE + 1)
        for inner in range(2 ** (degree - 1))
        if _period(degree, 2**degree + 2 * inner + 1) == 2**degree - 1
    ]


def _period(degree: int, polynomial: int) -> int:
    """The smallest power of x that is 1 modulo a polynomial with a constant term, given by its bits."""
    power, state = 0, 1
    while power == 0 or state != 1:
        state <<= 1
        if state >> degree:
            state ^= polynomial
        power += 1
    return power


@jit
def sobol(direction: Array, first: int, seed: Any, out: Array) -> None:
    """Fill `out`, float64 of shape (m,), with the numbers from `first` on of one place, in (0, 1), scrambled by a seed.

    - direction: The place's row of `directions`.
    - first: The first number.
    - seed: uint64.
    - out: Filled.
    """
    start = mix64(np.uint64(seed) ^ _STEP)
    for i in range(out.shape[0]):
        number = np.uint64(0)
        rest, k = first + i, 0
        while rest:
            if rest & 1:
                number ^= direction[k]
            rest >>= 1
            k += 1
        # Each bit is flipped, or not, by those before it.
        scrambled, node = number, start
        for bit in range(BITS - 1, -1, -1):
            scrambled ^= (node & np.uint64(1)) << np.uint64(bit)
            node = mix64(node + _STEP + ((number >> np.uint64(bit)) & np.uint64(1)))
        out[i] = (np.float64(scrambled) + 0.5) * 2.0**-32


@jit
def _tail(r: float) -> Any:
    """The quantile of a normal tail of the probability exp(-r^2), r at least 1.6."""
    if r <= 5.0:
        s = r - 1.6
        top = (((((((7.74545014278341407640e-4 * s + 2.27238449892691845833e-2) * s + 2.41780725177450611770e-1) * s
            + 1.27045825245236838258e0) * s + 3.64784832476320460504e0) * s + 5.76949722146069140550e0) * s
            + 4.63033784615654529590e0) * s + 1.42343711074968357734e0)  # fmt: skip
        low = (((((((1.05075007164441684324e-9 * s + 5.47593808499534494600e-4) * s + 1.51986665636164571966e-2) * s
            + 1.48103976427480074590e-1) * s + 6.89767334985100004550e-1) * s + 1.67638483018380384940e0) * s
            + 2.05319162663775882187e0) * s + 1.0)  # fmt: skip
        return top / low
    s = r - 5.0
    top = (((((((2.01033439929228813265e-7 * s + 2.71155556874348757815e-5) * s + 1.24266094738807843860e-3) * s
        + 2.65321895265761230930e-2) * s + 2.96560571828504891230e-1) * s + 1.78482653991729133580e0) * s
        + 5.46378491116411436990e0) * s + 6.65790464350110377720e0)  # fmt: skip
    low = (((((((2.04426310338993978564e-15 * s + 1.42151175831644588870e-7) * s + 1.84631831751005468180e-5) * s
        + 7.86869131145613259100e-4) * s + 1.48753612908506148525e-2) * s + 1.36929880922735805310e-1) * s
        + 5.99832206555887937690e-1) * s + 1.0)  # fmt: skip
    return top / low


@jit
def normal_quantile(u: float) -> Any:
    """The quantile of the standard normal law at u in (0, 1), by Wichura's algorithm AS 241."""
    q = u - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        top = (((((((2.50908092873012267270e3 * r + 3.34305755835881281050e4) * r + 6.72657709270087008530e4) * r
            + 4.59219539315498714570e4) * r + 1.37316937655094611250e4) * r + 1.97159095030655144270e3) * r
            + 1.33141667891784377450e2) * r + 3.38713287279636660800e0)  # fmt: skip
        low = (((((((5.22649527885285456100e3 * r + 2.87290857355219426740e4) * r + 3.93078958000927106100e4) * r
            + 2.12137943015865958670e4) * r + 5.39419602142475110770e3) * r + 6.87187007492057908300e2) * r
            + 4.23133307016009112520e1) * r + 1.0)  # fmt: skip
        return q * top / low
    size = _tail(np.sqrt(-log(u if q < 0 else 1.0 - u)))
    return -size if q < 0 else size


@jit
def _quantile(law: int, u: float) -> Any:
    if law == NORMAL:
        return normal_quantile(u)
    if law == CAUCHY:
        w = u - 0.5
        return sin_half_turns(w) / sin_half_turns(0.5 - abs(w))
    return log(2.0 * u) if u < 0.5 else -log(2.0 * (1.0 - u))


@jit
def quantiles(law: int, U: Array, scale: float, out: Array) -> None:
    """Fill `out` with the quantiles of a law, times `scale`, at numbers in (0, 1).

    - law: `NORMAL`, `CAUCHY` or `LAPLACE`, of scale 1.
    - U: The numbers, float64 of the shape of `out`.
    - scale: Multiplies each quantile.
    - out: Filled; shape (d, m), float32 or float64, cut at `LARGEST_DRAW` either way.
    """
    for j in range(U.shape[0]):
        for i in range(U.shape[1]):
            out[j, i] = min(max(_quantile(law, U[j, i]) * scale, -LARGEST_DRAW), LARGEST_DRAW)
