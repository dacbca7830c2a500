"""What the intrinsics of `streamkernel.compute` do, in numpy: without compiled code they cannot be called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_INSTEAD = {
    "streamkernel/compute/intrinsics.py": "wide prefetch add_four dot_four popcount rint copysign multiply_add",
    "streamkernel/compute/lanes.py": "fill two four eight sixteen signed_sixteen",
    "streamkernel/compute/tiles.py": "row_product add_row step_tile",
    "streamkernel/compute/packed.py": "multiply_row downdate_one downdate_two",
}
_LANES = 8


def install(copy: Path) -> None:
    """Let the kernels of a copy of the checkout call these functions."""
    for file, names in _INSTEAD.items():
        with (copy / file).open("a") as module:
            module.write(f"\nfrom tests.mutants.without_vectors import {', '.join(names.split())}  # noqa\n")


def wide() -> None:
    pass


def prefetch(array: Array, index: int) -> None:
    pass


def add_four(sums: Array, place: int, terms: Array, start: int) -> None:
    sums.reshape(-1)[place : place + 4] += terms.reshape(-1)[start : start + 4]


def dot_four(a: Array, b: Array, c: Array, place: int) -> Any:
    x, y, z = (each.reshape(-1)[place : place + 4] for each in (a, b, c))
    return (x * y * z).sum()


def popcount(word: Any) -> int:
    return int(word).bit_count()


rint, copysign = np.rint, np.copysign


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def fill(data: Array, at: int, value: Any) -> None:
    data[at : at + 16] = value


def _butterflies(n: int) -> Callable[[Array, int, int], None]:
    def transform(data: Array, at: int, step: int) -> None:
        vectors = [data[at + k * step : at + k * step + 16] for k in range(n)]
        distance = 1
        while distance < n:
            for i in range(n):
                if not i & distance:
                    a, b = vectors[i].copy(), vectors[i + distance].copy()
                    vectors[i][:], vectors[i + distance][:] = a + b, a - b
            distance *= 2

    return transform


two, four, eight, sixteen = map(_butterflies, (2, 4, 8, 16))


def signed_sixteen(data: Array, at: int, words: Array, word: int, bit: int) -> None:
    signs = words[word : word + 16].astype(np.uint32) << np.uint32(bit)
    bits = data[at : at + 256].view(np.uint32).reshape(16, 16)
    for vector in bits:
        vector ^= signs & np.uint32(1 << 31)
        signs = signs + signs
    sixteen(data, at, 16)


def row_product(A: Array, i: int, v: Array) -> Any:
    return A[i] @ v


def add_row(A: Array, i: int, factor: Any, ratio: Any, base: Array, u: Array, ubar: Array) -> None:
    added = factor * A[i]
    ubar[:] = base + ratio * added
    u += added


def step_tile(tiles: Array, block: int, ubar: Array, d: int, numbers: Any, x: Array, v: Array, vbar: Array) -> None:
    tile, (slope, threshold, shrink, extrapolation) = tiles[block], numbers
    moved = x[block] + slope * (tile[:d].T @ ubar[:d])
    after = (np.maximum(moved - threshold, 0) + np.minimum(moved + threshold, 0)) * shrink
    added = tile @ (after - x[block])
    x[block] = after
    vbar[:] = v + extrapolation * added
    v += added


def multiply_row(tiles: Array, first: int, block: int, x: Array, v: Array) -> None:
    row = _LANES * block
    total = np.zeros(_LANES)
    for j in range(block + 1):
        column = slice(_LANES * j, _LANES * (j + 1))
        tile = tiles[first + 64 * j : first + 64 * (j + 1)].reshape(_LANES, _LANES)
        total += tile @ x[column]
        if j < block:
            v[column] += x[row : row + _LANES] @ tile
    v[row : row + _LANES] = total


def _downdates(count: int) -> Callable[[Array, int, Array, int, int], None]:
    def downdate(tiles: Array, first: int, vectors: Array, row: int, column: int) -> None:
        numbers = tiles[first : first + 64 * count].reshape(count, _LANES, _LANES)
        for vector in vectors[:_LANES]:
            across = vector[column : column + _LANES * count].reshape(count, 1, _LANES)
            numbers -= vector[row : row + _LANES].reshape(1, _LANES, 1) * across

    return downdate


downdate_one, downdate_two = map(_downdates, (1, 2))
