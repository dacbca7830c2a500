"""Twins of Sobol's numbers and of quantiles: whole numbers of Python's, and its statistics module."""

import math
import statistics

from tests.naive.gaussians import mix64

_STEP = 0x9E3779B97F4A7C15
_BITS = 32


def sobol(direction, first, seed, n):
    numbers = []
    for i in range(first, first + n):
        number = 0
        for k in range(i.bit_length()):
            if i >> k & 1:
                number ^= int(direction[k])
        prefix, node, scrambled = f"{number:032b}", mix64(seed ^ _STEP), ""
        for bit in prefix:
            scrambled += str(int(bit) ^ node % 2)
            node = mix64((node + _STEP + int(bit)) % 2**64)
        numbers.append((int(scrambled, 2) + 0.5) / 2**_BITS)
    return numbers


def _tail(r):
    return -normal_quantile(math.exp(-(r**2)))


def normal_quantile(u):
    return statistics.NormalDist().inv_cdf(u)


def quantiles(law, U, scale):
    return [[_quantile(law, u) * scale for u in row] for row in U]


def _quantile(law, u):
    return [normal_quantile, lambda u: math.tan(math.pi * (u - 0.5)), _laplace][law](u)


def _laplace(u):
    return math.log(2 * u) if u < 0.5 else -math.log(2 * (1 - u))
