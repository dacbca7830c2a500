"""Twins of the counter-based draw: splitmix64, and standard normal numbers of 64 hashed bits."""

import numpy as np

WORD = 2**64
HALF_WORD = 2**32
GOLDEN = 0x9E3779B97F4A7C15


def mix64(word):
    """splitmix64's finalizer."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def random_signs(word, n, m):
    return [[1 if mix64((word + c) % WORD) >> s & 1 else -1 for c in range(m)] for s in range(n)]


def feature_words(seed, first, n):
    base = mix64((seed + GOLDEN) % WORD)
    return [mix64((base + i * GOLDEN) % WORD) for i in range(first, first + n)]


def hash64(low, high):
    """The 64 mixed bits of two halves of a word: 48 to count, 16 to dither."""
    x = low * 0x9E3779B1 % HALF_WORD
    y = (high ^ x ^ (x >> 15)) * 0x85EBCA77 % HALF_WORD
    x ^= y ^ (y >> 13)
    return (x << 16) | (y >> 16), y % 2**16


def centered(count, dither):
    """A count of 48 bits and two bytes of dither, less their means, in units of 2^-8 of a bit."""
    return 256 * (count - 24) + dither // 256 + dither % 256 - 255


def counted(low, high):
    bits, dither = hash64(low, high)
    return centered(bits.bit_count(), dither)


def shaped(centered):
    """x (a + b x^2) of x in bits, in (-25, 25): one float32 rounding after each operation."""
    x = np.float32(centered / 256)
    return x * (np.float32(0.28518261886330426) + np.float32(4.1825692287907671e-05) * (x * x))


def normal(low, high):
    return shaped(counted(low, high))


def gaussians(words, keys, scale, dtype):
    out = np.empty((len(keys), len(words)), dtype)
    for j, key in enumerate(keys):
        for i, word in enumerate(words):
            both = word ^ key
            out[j, i] = out.dtype.type(normal(both % HALF_WORD, both >> 32)) * out.dtype.type(scale)
    return out
