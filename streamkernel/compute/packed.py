"""Symmetric matrices in tiles of 8 x 8, of which those above the diagonal are not stored.

A product reads each number once and uses it twice, one vector after the other in the order of memory. A matrix of D
rows is that of a multiple of 8, padded with zeros, as are the vectors it meets. Tiles lie row by row of tiles, each
by its rows; those on the diagonal are whole, and symmetric to the last bit.
"""

# mypy: disable-error-code="no-untyped-call"

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.levels import LEVEL
from streamkernel.compute.vectors import LANES, Code, instruction

#: Vectors whose products are subtracted at once.
RANK = 8
_TILE = LANES * LANES
# Rows of a tile that are multiplied at once, and of two tiles that change: as many as there are registers for.
_TURNS = [range(LANES)] if LEVEL == "x86-64-v4" else [range(0, LANES, 2), range(1, LANES, 2)]
_ROWS = LANES if LEVEL == "x86-64-v4" else 2


def _products(adds: bool) -> Any:
    @instruction(None, types.intp, types.intp, None, types.intp, None, None)
    def multiply_row(code: Code, tiles: Any, first: Any, block: Any, columns: Any, n: Any, x: Any, v: Any) -> None:
        """Multiply x by the row of tiles `block`, which begins at `first`, into v.

        Its last tile and n tiles before that give its own eight numbers. With `adds`, these are the first n, and what
        they add to the numbers before is added, too. Without, `columns` has the numbers of the n tiles.
        """
        builder, size = code.builder, first.type
        row = builder.mul(block, size(LANES))
        whole = {}
        for rows in _TURNS:
            factors = {r: code.spread(builder.load(builder.gep(x, [builder.add(row, size(r))]))) for r in rows}
            sums = {r: code.zero() for r in rows}
            with cgutils.for_range(builder, n) as loop:
                other = loop.index if adds else builder.load(builder.gep(columns, [loop.index]))
                column = builder.mul(other, size(LANES))
                at = builder.add(first, builder.mul(other, size(_TILE)))
                of_x = code.load(x, column)
                # Two sums of four rows each: a chain of eight would be waited for.
                halves = [code.load(v, column), code.none]
                for r in rows:
                    numbers = code.load(tiles, at, r)
                    builder.store(code.multiply_add(numbers, of_x, builder.load(sums[r])), sums[r])
                    halves[r % 2] = code.multiply_add(numbers, factors[r], halves[r % 2])
                if adds:
                    code.store(builder.fadd(*halves) if 1 in rows else halves[0], v, column)
            at = builder.add(first, builder.mul(block, size(_TILE)))
            of_x = code.load(x, row)
            for r in rows:
                whole[r] = code.multiply_add(code.load(tiles, at, r), of_x, builder.load(sums[r]))
        code.store(code.totals([whole[r] for r in range(LANES)]), v, row)

    return multiply_row


add_row, sum_row = _products(True), _products(False)


def _downdates(count: int) -> Any:
    @instruction(None, types.intp, None, types.intp, types.intp)
    def downdate_tiles(code: Code, tiles: Any, first: Any, vectors: Any, row: Any, column: Any) -> None:
        """Subtract the outer products of rows with columns from some tiles."""
        builder, size, (_, width) = code.builder, first.type, code.shape(2)
        for top in range(0, LANES, _ROWS):
            places = [[LANES * k + top + r for r in range(_ROWS)] for k in range(count)]
            numbers = [[code.load(tiles, first, place) for place in own] for own in places]
            for m in range(RANK):
                vector = builder.gep(vectors, [builder.mul(width, size(m))])
                across = [code.load(vector, column, k) for k in range(count)]
                for r in range(_ROWS):
                    down = builder.load(builder.gep(vector, [builder.add(row, size(top + r))]))
                    factor = code.spread(builder.fneg(down))
                    for k in range(count):
                        numbers[k][r] = code.multiply_add(factor, across[k], numbers[k][r])
            for k in range(count):
                for r in range(_ROWS):
                    code.store(numbers[k][r], tiles, first, places[k][r])

    return downdate_tiles


downdate_one, downdate_two = _downdates(1), _downdates(2)


def padded(n: int) -> int:
    """Numbers of a vector of n, padded."""
    return -(-n // LANES) * LANES


def packed_size(n: int) -> int:
    """Numbers of a packed matrix of n rows."""
    blocks = padded(n) // LANES
    return blocks * (blocks + 1) // 2 * _TILE


@jit
def place(i: int, j: int) -> Any:
    """Where a packed matrix has what is in row i, and column j of the same or an earlier tile."""
    block = i // LANES
    return (block * (block + 1) // 2 + j // LANES) * _TILE + i % LANES * LANES + j % LANES


@jit
def pack(P: Array, tiles: Array) -> None:
    """Pack the lower triangle of a matrix (D, D)."""
    tiles[:] = 0.0
    for i in range(P.shape[0]):
        for j in range(i + 1):
            tiles[place(i, j)] = P[i, j]
            if i // LANES == j // LANES:
                tiles[place(j, i)] = P[i, j]


@jit
def unpack(tiles: Array, P: Array) -> None:
    """Fill a matrix (D, D) with the lower triangle that is packed, and zeros."""
    for i in range(P.shape[0]):
        for j in range(i + 1):
            P[i, j] = tiles[place(i, j)]
        P[i, i + 1 :] = 0.0


@jit
def multiply_rows(tiles: Array, first: int, block: int, X: Array, filled: Array, ends: Array, V: Array) -> None:
    """Give rows of V what the row of tiles `block`, which begins at `first`, has to do with those of X.

    - X, V: Shape (n or more, padded D).
    - filled, ends: The tiles before this one in which each row of X is not 0, int64 of shape (n, tiles of a row), and
      how many these are, (n,); updated.
    """
    for r in range(ends.shape[0]):
        x, is_filled = X[r], False
        for i in range(block * LANES, (block + 1) * LANES):
            is_filled |= x[i] != 0.0
        if is_filled:
            add_row(tiles, first, block, filled[r], block, x, V[r])
            filled[r, ends[r]] = block
            ends[r] += 1
        else:
            sum_row(tiles, first, block, filled[r], ends[r], x, V[r])


@jit
def downdate_row(tiles: Array, first: int, block: int, vectors: Array) -> None:
    """P -= sum of c c^T over the rows c of `vectors`, (8, padded D), in the row of tiles that begins at `first`."""
    row, column = block * LANES, 0
    while column < row:
        downdate_two(tiles, first, vectors, row, column)
        first += 2 * _TILE
        column += 2 * LANES
    if column == row:
        downdate_one(tiles, first, vectors, row, column)


@jit
def settled_products(tiles: Array, is_due: bool, late: Array, diagonals: Array, X: Array, V: Array, n: int) -> None:
    """The products of a packed matrix, which takes what is due first, with some vectors at once: one pass over it.

    Each vector has the bits that it would have alone.

    - is_due: Whether anything is.
    - late: Vectors c whose c c^T are due, (8, padded D); those that are not are 0, and so are all afterwards.
    - diagonals: Of shape (2, D): what the diagonal will be, and what the products would make it; the same afterwards.
    - X, V: The first n rows of X are multiplied, those of V filled; shape (n or more, padded D).
    """
    D, n_blocks = diagonals.shape[1], late.shape[1] // LANES
    filled, ends = np.empty((n, n_blocks), np.int64), np.empty(n, np.int64)
    ends[:] = 0
    first = 0
    for block in range(n_blocks):
        if is_due:
            downdate_row(tiles, first, block, late)
            for i in range(block * LANES, min((block + 1) * LANES, D)):
                tiles[place(i, i)] = diagonals[1, i] = diagonals[0, i]
        multiply_rows(tiles, first, block, X, filled, ends, V)
        first += (block + 1) * _TILE
    if is_due:
        late[:] = 0.0
