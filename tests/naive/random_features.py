"""Plain twins of `streamkernel.compute.random_features` and `sketches`: one number after the other."""

import cmath
import math

from tests.naive import laws

CONSTANT = 0x636F6E7374616E74


def project(x, W):
    return [sum(a * w[i] for a, w in zip(x, W, strict=True)) for i in range(len(W[0]))]


def waves(turns):
    """Cosines, then sines, of a row."""
    return [wave(2 * math.pi * t) for wave in (math.cos, math.sin) for t in turns]


def decays(numbers):
    return [math.exp(-x) for x in numbers]


def logs(x, c):
    return [math.log(max(a / c + 1, 1e-30)) for a in x]


def homogeneous_waves(x, signs, turns):
    """Cosines, then sines."""
    angles = [[2 * math.pi * t * math.log(a) if a > 0 else 0.0 for a in x] for t in turns]
    roots = [math.sqrt(a) for a in x]
    return [
        sum(root * r[i] * wave(angle) for root, r, angle in zip(roots, signs, angles[i], strict=True))
        for wave in (math.cos, math.sin)
        for i in range(len(turns))
    ]


def add_parts(phi, alpha, first):
    """The score of each output: phi is one row, `alpha[o][p]` a list."""
    m = len(phi) // len(alpha[0])
    return [
        sum(phi[p * m + i] * part[first + i] for p, part in enumerate(of_output) for i in range(m))
        for of_output in alpha
    ]


def sign_products(x, words, keys, orders, weights):
    out = []
    for word, order, weight in zip(words, orders, weights, strict=True):
        signs = [laws.bits(laws.stream(word, key), 0) for key in keys]
        sums = [sum(a if s >> k & 1 else -a for a, s in zip(x, signs, strict=True)) for k in range(order)]
        out.append(weight * math.prod(sums))
    return out


def count_sketches(x, words, keys, constant, degree, F):
    """The sketches of a row: of each block `degree` lists of F numbers."""
    out = [[[0.0] * F for _ in range(degree)] for _ in words]
    for word, of_block in zip(words, out, strict=True):
        for value, key in zip([*x, constant], [*keys, CONSTANT], strict=True):
            for k in range(degree):
                bits = laws.bits(laws.stream(word, key), k)
                of_block[k][(bits >> 1) % F] += value if bits & 1 else -value
    return out


def multiply_spectra(spectra):
    """The product of the spectra of a block."""
    return [math.prod(numbers) for numbers in zip(*spectra, strict=True)]


def convolved(sketches):
    """The circular convolution of lists of F numbers, as it is defined."""
    F = len(sketches[0])
    out = sketches[0]
    for other in sketches[1:]:
        out = [sum(out[j] * other[(i - j) % F] for j in range(F)) for i in range(F)]
    return out


def spectrum(numbers):
    F = len(numbers)
    return [sum(a * cmath.exp(-2j * math.pi * i * j / F) for j, a in enumerate(numbers)) for i in range(F // 2 + 1)]
