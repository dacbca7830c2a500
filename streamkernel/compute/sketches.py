"""Random features of kernels of the inner product: products of random sums, and count sketches."""

import numpy as np

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.laws import bits, stream

#: Products are cut here as they are formed.
_LARGEST = 1e150
#: The key of a constant next to the inputs.
_CONSTANT = np.uint64(0x636F6E7374616E74)


@jit
def sign_products(X: Array, words: Array, keys: Array, orders: Array, weights: Array, most: float, out: Array) -> None:
    """Products of sums of the inputs with random signs.

    Parameters
    ----------
    X
        Rows, shape (n, d).
    words
        The features' words, uint64 of shape (m,).
    keys
        The inputs' keys, uint64 of shape (d,).
    orders
        The number of sums that each feature multiplies, at most 64; int64 of shape (m,).
    weights
        What each product is multiplied by, float64 of shape (m,).
    most
        Where features are cut either way.
    out
        Filled; shape (n, m).
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

    Parameters
    ----------
    X
        Rows, shape (n, d).
    words
        The blocks' words, uint64 of shape (blocks,).
    keys
        The inputs' keys, uint64 of shape (d,).
    constant
        One more input of every row.
    out
        Filled; float64 of shape (n, blocks, degree, F), independent sketches for each block and degree.
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
