"""Plain twins of `streamkernel.compute.laws`, by the functions of `math`."""

import math

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


def _sech(state, counter):
    size = -math.log(math.tan(math.pi / 4 * uniform(state, counter))) / math.pi
    return size if bits(state, counter + 1) >> 63 else -size


def _normal(state, counter):
    angle = math.pi * (2 * uniform(state, counter + 1) - 1)
    return math.sqrt(-2 * math.log(uniform(state, counter))) * math.sin(angle)


def draw(law, word, key):
    """A draw of the law of a name."""
    state = stream(word, key)
    u = uniform(state, 0)
    if law == "CAUCHY":
        return math.tan(math.pi * (u - 0.5))
    if law == "LAPLACE":
        return -math.log(u) if bits(state, 1) >> 63 else math.log(u)
    if law == "SECH":
        return _sech(state, 0)
    if law == "EXPONENTIAL":
        return -math.log(u)
    if law == "LEVY":
        return 1 / _normal(state, 0) ** 2
    for counter in range(0, 3000, 3):
        omega = _sech(state, counter)
        if uniform(state, counter + 2) < 1 / (1 + 4 * omega * omega):
            return omega
    raise AssertionError("no candidate of a thousand was taken")


def gamma(word, key, shape):
    """A draw of the gamma law by Marsaglia and Tsang."""
    state = stream(word, key)
    d = max(shape, shape + 1 if shape < 1 else shape) - 1 / 3
    for counter in range(1, 3000, 3):
        z = _normal(state, counter)
        v = (1 + z / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(uniform(state, counter + 2)) < z * z / 2 + d - d * v + d * math.log(v):
            return d * v * (uniform(state, 0) ** (1 / shape) if shape < 1 else 1)
    raise AssertionError("no candidate of a thousand was taken")


def sign(word, key):
    return 1.0 if bits(stream(word, key), 0) >> 63 else -1.0
