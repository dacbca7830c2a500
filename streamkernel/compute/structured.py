"""Structured Gaussian frequencies: sign flips and Walsh-Hadamard transforms in the place of a matrix.

Of a group of n = 2^k inputs, n frequencies at a time are the rows of

    diag(chi) H D_1 H D_2 H D_3 / (n^(3/2) bandwidth)

where H is the Walsh-Hadamard matrix, D_i are random signs and chi_i is the norm of a Gaussian vector of length n. Rows
of one stack are orthogonal, which makes the kernel's estimate better than independent ones do, and a projection costs
3 log2 n additions a feature, whatever n. Sixteen stacks lie side by side: feature f of a tile of 16 n is row f // 16
of stack f % 16. Signs and norms are functions of (seed, group, tile), drawn whenever they are used.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.features import add_tile, cos_sin
from streamkernel.compute.gaussians import COUNTED_DEVIATION, counted, mix64
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.lanes import LANES, eight, fill, four, signed_sixteen, sixteen, two
from streamkernel.compute.vectors import wide

_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROW = np.uint32(0x9E3779B1)
#: Rows that share what is drawn; their turns stay in the second-level cache.
AT_ONCE = 32
#: Features whose cosines and sines are taken at a time: they stay in the first-level cache.
PART = 2048


class Groups(NamedTuple):
    """Where each group of inputs begins, and its size, a power of two from 16 up: int64 of shape (g,)."""

    starts: Array
    sizes: Array


@jit
def _stack_word(seed: Any, group: int, tile: int) -> Any:
    """What all signs and norms of sixteen stacks are derived from."""
    base = mix64(np.uint64(seed) + _STEP)
    return mix64(mix64(base + np.uint64(group + 1) * _STEP) + np.uint64(tile) * _STEP)


@jit
def _draw_signs(word: Any, words: Array) -> None:
    """Fill uint32 words, each bit a sign."""
    for i in range(words.shape[0]):
        words[i] = np.uint32(mix64(word + np.uint64(i) * _STEP) & np.uint64(0xFFFFFFFF))


@jit
def _draw_norms(word: Any, n: int, scale: float, norms: Array) -> None:
    """Norms of Gaussian vectors of length n, times `scale`.

    Wilson and Hilferty's chi, sqrt(n) (c + s z)^(3/2) of a standard normal z, s^2 = 2 / (9 n) and c = 1 - s^2, by the
    first three terms of the power: the fourth is below 1% of the whole at 4 deviations and n = 16.
    """
    low = np.uint32(word & np.uint64(0xFFFFFFFF))
    high = np.uint32(word >> np.uint64(32))
    s = np.sqrt(2 / (9 * n))
    root = np.sqrt(1 - s * s)
    whole = np.sqrt(n) * scale
    a0 = np.float32(whole * root * root * root)
    a1 = np.float32(whole * 1.5 * root * s / COUNTED_DEVIATION)
    a2 = np.float32(whole * 0.375 / root * (s / COUNTED_DEVIATION) ** 2)
    row = np.uint32(0)
    for i in range(norms.shape[0]):
        row = np.uint32(row + _ROW)
        z = counted(np.uint32(low ^ row), high)
        norms[i] = np.float32(a0 + np.float32(z * np.float32(a1 + np.float32(z * a2))))


@jit
def _transform(data: Array, words: Array, n: int) -> None:
    """H D_1 H D_2 H D_3 of sixteen stacks, in place; data is (16 n,)."""
    rows = max(n // 32, 1)
    for turn in range(3):
        for i in range(0, n, 16):
            signed_sixteen(data, i * LANES, words, (turn * rows + i // 32) * LANES, i % 32)
        h = 16
        while 16 * h <= n:
            for block in range(0, n, 16 * h):
                for i in range(block, block + h):
                    sixteen(data, i * LANES, h * LANES)
            h *= 16
        for i in range(h):
            if 8 * h == n:
                eight(data, i * LANES, h * LANES)
            elif 4 * h == n:
                four(data, i * LANES, h * LANES)
            elif 2 * h == n:
                two(data, i * LANES, h * LANES)


@jit
def _add_group(
    X: Array, r: int, start: int, words: Array, norms: Array, n: int, data: Array, turns: Array, first: int
) -> None:
    """Add the share of one row's inputs from `start` on to its turns of 16 n features from `first` on."""
    # Inputs that are all absent add nothing: a row's bits do not depend on groups that others need.
    stop = min(start + n, X.shape[1])
    some = False
    for j in range(start, stop):
        some |= X[r, j] != 0
    if not some:
        return
    for j in range(start, stop):
        fill(data, (j - start) * LANES, X[r, j])
    data[(stop - start) * LANES :] = 0
    _transform(data, words, n)
    own = turns[r, first : first + LANES * n]
    for f in range(own.shape[0]):
        own[f] += norms[f] * data[f]


@jit
def draw_norms(groups: Groups, seed: Any, scale: float, first: int, norms: Array) -> None:
    """Fill norms, float32 of shape (g, m), of every group and the features from `first` on, as `add_turns` has them."""
    for g in range(groups.starts.shape[0]):
        n = groups.sizes[g]
        size = LANES * n
        for at in range(0, norms.shape[1], size):
            word = _stack_word(seed, g, (first + at) // size)
            _draw_norms(mix64(word), n, scale / (n * np.sqrt(n)), norms[g, at : at + size])


@jit
def add_turns(
    X: Array, groups: Groups, seed: Any, scale: float, cached: Array, first: int, n_features: int, turns: Array
) -> None:
    """Add x W of some features to every row of `turns`.

    - X: Rows, float32 of shape (n, d).
    - groups: The inputs' groups, all that begin before d.
    - seed: The stream of frequencies.
    - scale: 1 / (2 pi bandwidth).
    - cached: Norms of the features from 0 on, float32 of shape (g, m), m a multiple of the width; those of others are
      drawn.
    - first, n_features: The features: the first is a multiple of the width, and some after the last are added too.
    - turns: Added to; float32 of shape (n, width), the width a power of two and at least 16 times the largest group.
    """
    for g in range(groups.starts.shape[0]):
        n = groups.sizes[g]
        size = LANES * n
        data = np.empty(size, np.float32)
        drawn = np.empty(size, np.float32)
        words = np.empty(3 * max(n // 32, 1) * LANES, np.uint32)
        for at in range(0, n_features, size):
            word = _stack_word(seed, g, (first + at) // size)
            _draw_signs(word, words)
            norms = drawn
            if first < cached.shape[1]:
                norms = cached[g, first + at : first + at + size]
            else:
                _draw_norms(mix64(word), n, scale / (n * np.sqrt(n)), drawn)
            for r in range(X.shape[0]):
                _add_group(X, r, groups.starts[g], words, norms, n, data, turns, at)


@jit
def structured_scores(
    X: Array,
    groups: Groups,
    seed: Any,
    scale: float,
    cached: Array,
    width: int,
    alpha: Array,
    n_features: int,
    sine: Array,
    scores: Array,
) -> None:
    """Add sum_k phi_k(x) . alpha_k, without the factor F^-1/2, to every row of `scores`, as `add_scores` does.

    - X, groups, seed, scale, cached: As `add_turns` has them.
    - width: Features drawn at a time, a power of two, at least `PART` and 16 times the largest group.
    - alpha: Coefficients, shape (K, 2, at least n_features): of the cosines, then of the sines.
    - n_features: The features to add.
    - sine: The polynomial, `SINE[X.dtype]`.
    - scores: Added to, float64 of shape (n, K).
    """
    wide()
    cosines = np.empty(PART, np.float32)
    sines = np.empty(PART, np.float32)
    room = np.empty((min(X.shape[0], AT_ONCE), width), np.float32)
    for begin in range(0, X.shape[0], AT_ONCE):
        rows = X[begin : begin + AT_ONCE]
        turns = room[: rows.shape[0]]
        for first in range(0, n_features, width):
            turns[:] = 0
            n = min(width, n_features - first)
            add_turns(rows, groups, seed, scale, cached, first, n, turns)
            # Always as many at a time, so that the sums are the same whatever the groups.
            for at in range(0, n, PART):
                m = min(PART, n - at)
                for r in range(rows.shape[0]):
                    add_tile(turns[r, at : at + m], alpha, first + at, sine, cosines, sines, scores[begin + r])


@jit
def structured_features(
    X: Array,
    groups: Groups,
    seed: Any,
    scale: float,
    cached: Array,
    width: int,
    first: int,
    sine: Array,
    out: Array,
) -> None:
    """phi(x) = F^-1/2 [cos, sin] of the F features from `first` on, for every row; out is float32 of shape (n, 2 F)."""
    wide()
    F = out.shape[1] // 2
    norm = np.float32(1 / np.sqrt(F))
    turns = np.empty((X.shape[0], width), np.float32)
    for start in range(first // width * width, first + F, width):
        turns[:] = 0
        a, b = max(first, start), min(first + F, start + width)
        add_turns(X, groups, seed, scale, cached, start, b - start, turns)
        for r in range(X.shape[0]):
            own = out[r]
            cos_sin(
                turns[r, a - start : b - start], sine, own[a - first : b - first], own[F + a - first : F + b - first]
            )
    for r in range(X.shape[0]):
        for i in range(2 * F):
            out[r, i] *= norm
