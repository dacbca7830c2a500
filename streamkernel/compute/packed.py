"""Symmetric matrices in tiles of 8 x 8, of which those above the diagonal are not stored.

A product reads each number once and uses it twice, one vector after the other in the order of memory. A matrix of D
rows is that of a multiple of 8, padded with zeros, as are the vectors it meets. Tiles lie row by row of tiles, each
by its rows; those on the diagonal are whole, and symmetric to the last bit.
"""

# mypy: disable-error-code="no-untyped-call"

from typing import Any

from numba import types
from numba.core import cgutils

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.vectors import LANES, Code, instruction

#: Vectors whose products are subtracted at once.
RANK = 8
_TILE = LANES * LANES


@instruction(None, types.intp, types.intp, None, None)
def multiply_row(code: Code, tiles: Any, first: Any, block: Any, x: Any, v: Any) -> None:
    """Give v what the row of tiles `block`, which begins at `first`, has to do with x.

    These are its own eight numbers, and what it adds to those before.
    """
    builder, size = code.builder, first.type
    row = builder.mul(block, size(LANES))
    factors = [code.spread(builder.load(builder.gep(x, [builder.add(row, size(r))]))) for r in range(LANES)]
    sums = [code.zero() for _ in range(LANES)]
    with cgutils.for_range(builder, block) as loop:
        column = builder.mul(loop.index, size(LANES))
        at = builder.add(first, builder.mul(loop.index, size(_TILE)))
        of_x = code.load(x, column)
        # Two sums of four rows each: a chain of eight would be waited for.
        halves = [code.load(v, column), code.none]
        for r in range(LANES):
            numbers = code.load(tiles, at, r)
            builder.store(code.multiply_add(numbers, of_x, builder.load(sums[r])), sums[r])
            halves[r % 2] = code.multiply_add(numbers, factors[r], halves[r % 2])
        code.store(builder.fadd(*halves), v, column)
    at = builder.add(first, builder.mul(block, size(_TILE)))
    of_x = code.load(x, row)
    whole = [code.multiply_add(code.load(tiles, at, r), of_x, builder.load(sums[r])) for r in range(LANES)]
    code.store(code.totals(whole), v, row)


def _downdates(count: int) -> Any:
    @instruction(None, types.intp, None, types.intp, types.intp)
    def downdate_tiles(code: Code, tiles: Any, first: Any, vectors: Any, row: Any, column: Any) -> None:
        """Subtract the outer products of rows with columns from some tiles."""
        builder, size, (_, width) = code.builder, first.type, code.shape(2)
        numbers = [[code.load(tiles, first, LANES * k + r) for r in range(LANES)] for k in range(count)]
        for m in range(RANK):
            vector = builder.gep(vectors, [builder.mul(width, size(m))])
            across = [code.load(vector, column, k) for k in range(count)]
            for r in range(LANES):
                down = builder.load(builder.gep(vector, [builder.add(row, size(r))]))
                factor = code.spread(builder.fneg(down))
                for k in range(count):
                    numbers[k][r] = code.multiply_add(factor, across[k], numbers[k][r])
        for k in range(count):
            for r in range(LANES):
                code.store(numbers[k][r], tiles, first, LANES * k + r)

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
def packed_product(tiles: Array, x: Array, v: Array) -> None:
    """v = P x of a packed matrix, (padded D,)."""
    first = 0
    for block in range(x.shape[0] // LANES):
        multiply_row(tiles, first, block, x, v)
        first += (block + 1) * _TILE


@jit
def packed_downdate(tiles: Array, vectors: Array) -> None:
    """P -= sum of c c^T over the rows c of `vectors`, (8, padded D), in one pass over a packed matrix."""
    first = 0
    for row in range(0, vectors.shape[1], LANES):
        column = 0
        while column < row:
            downdate_two(tiles, first, vectors, row, column)
            first += 2 * _TILE
            column += 2 * LANES
        if column == row:
            downdate_one(tiles, first, vectors, row, column)
            first += _TILE
