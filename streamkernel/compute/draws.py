"""Random choices of coordinates, from a generator whose state is an array of one uint64."""

from typing import Any

import numpy as np

from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import jit

Array = np.ndarray[Any, np.dtype[Any]]


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
