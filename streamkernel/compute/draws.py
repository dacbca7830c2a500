"""Random choices: coordinates, by a generator with a state of one uint64, and the inputs that a feature sees."""

from typing import Any

import numpy as np

from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import Array, jit


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

    Parameters
    ----------
    state
        The generator.
    pool
        Shape (n,): a permutation, which is permuted.
    chosen
        Shape (draws, at most n).
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

    Parameters
    ----------
    words
        The features' words, uint64 of shape (m,).
    sizes
        1 or 2 inputs that a feature sees, or 0 for all; int64 of shape (m,).
    n_inputs
        The first inputs, of which it sees some, int64 of shape (m,). One that would see as many sees all.
    first
        The input of the first row of W.
    W
        Frequencies, float32 of shape (d, m); the others' become 0.
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
