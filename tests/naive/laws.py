"""Plain twins of `streamkernel.compute.laws`, by the functions of `math`."""

import math

from streamkernel.compute.laws import CAUCHY, EXPONENTIAL, LAPLACE, LARGEST_DRAW, LEVY, SECH
from tests.naive.gaussians import mix64

STEP = 0x9E3779B97F4A7C15
KEYED = 0xA0761D6478BD642F
WORD = 2**64 - 1


def stream(word, key):
    return mix64(word ^ mix64(key ^ KEYED))


def bits(state, counter):
    return mix64((state + (counter + 1) * STEP) & WORD)


def uniform(state, counter):
    return ((bits(state, counter) >> 12) + 0.5) / 2**52


def log(x):
    return math.log(x)


def exp(x):
    if x < -745:
        return 0.0
    return math.inf if x > 709 else math.exp(x)


def _sine(y):
    return math.sin(y)


def _cosine(y):
    return math.cos(y)


def sin_half_turns(w):
    return math.sin(math.pi * w)


def _tangent(w):
    return math.tan(math.pi * w)


def _sech(state, counter):
    size = -math.log(_tangent(uniform(state, counter) / 4)) / math.pi
    return size if bits(state, counter + 1) >> 63 else -size


def _normal(state, counter):
    angle = math.pi * (2 * uniform(state, counter + 1) - 1)
    return math.sqrt(-2 * math.log(uniform(state, counter))) * math.sin(angle)


def _jensen_shannon(state):
    for counter in range(0, 3000, 3):
        omega = _sech(state, counter)
        if uniform(state, counter + 2) < 1 / (1 + 4 * omega * omega):
            return omega
    raise AssertionError("no candidate of a thousand was taken")


def _gamma(state, shape):
    """By Marsaglia and Tsang."""
    d = max(shape, shape + 1 if shape < 1 else shape) - 1 / 3
    for counter in range(1, 3000, 3):
        z = _normal(state, counter)
        v = (1 + z / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(uniform(state, counter + 2)) < z * z / 2 + d - d * v + d * math.log(v):
            return d * v * (uniform(state, 0) ** (1 / shape) if shape < 1 else 1)
    raise AssertionError("no candidate of a thousand was taken")


def _draw(law, state):
    u = uniform(state, 0)
    if law == CAUCHY:
        return _tangent(u - 0.5)
    if law == LAPLACE:
        return -math.log(u) if bits(state, 1) >> 63 else math.log(u)
    if law == SECH:
        return _sech(state, 0)
    if law == EXPONENTIAL:
        return -math.log(u)
    return 1 / _normal(state, 0) ** 2 if law == LEVY else _jensen_shannon(state)


def draws(law, words, keys, scale):
    cut = [[_draw(law, stream(word, key)) * scale for word in words] for key in keys]
    return [[min(max(value, -LARGEST_DRAW), LARGEST_DRAW) for value in of_input] for of_input in cut]


def gammas(words, key, shape):
    return [max(_gamma(stream(word, key), shape), 1e-300) for word in words]


def uniforms(words, key):
    return [uniform(stream(word, key), 0) for word in words]


def signs(words, keys):
    return [[1.0 if bits(stream(word, key), 0) >> 63 else -1.0 for word in words] for key in keys]


def salted(words, salt):
    return [mix64(word ^ mix64((salt * STEP + KEYED) & WORD)) for word in words]
