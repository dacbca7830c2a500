"""Products of a row, and of a tile of columns, eight numbers at a time: what an iteration on two factors consists of.

A loop over a few vectors spends more on its beginning and its end than on what it computes. Here as many columns as a
tile mostly has stay in registers, which numba's loops over arrays do not do. All arrays are float64, contiguous, and of
whole vectors, padded with zeros. Where a machine's vectors are shorter LLVM takes several: the functions are the same.
"""

# mypy: disable-error-code="no-untyped-call"

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.vectors import LANES, Code, instruction, prefetch

# Vectors of columns that are in registers at a time.
_MOST = 8


@instruction(None, types.intp, None, returns=types.float64)
def row_product(code: Code, A: Any, i: Any, v: Any) -> Any:
    """<A_i, v>, of A of shape (n, size)."""
    builder, (_, size) = code.builder, code.shape(0)
    first = builder.mul(i, size)
    total = code.zero()
    with cgutils.for_range(builder, builder.udiv(size, size.type(LANES))) as loop:
        at = builder.mul(loop.index, size.type(LANES))
        product = code.multiply_add(code.load(A, builder.add(first, at)), code.load(v, at), builder.load(total))
        builder.store(product, total)
    sums = code.totals([builder.load(total)] * LANES)
    return builder.extract_element(sums, ir.IntType(32)(0))


@instruction(None, types.intp, types.float64, types.float64, None, None, None)
def add_row(code: Code, A: Any, i: Any, factor: Any, ratio: Any, base: Any, u: Any, ubar: Any) -> None:
    """ubar = base + ratio factor A_i, and u += factor A_i."""
    builder, (_, size) = code.builder, code.shape(0)
    first = builder.mul(i, size)
    factor, ratio = code.spread(factor), code.spread(ratio)
    with cgutils.for_range(builder, builder.udiv(size, size.type(LANES))) as loop:
        at = builder.mul(loop.index, size.type(LANES))
        added = builder.fmul(factor, code.load(A, builder.add(first, at)))
        start, before = code.load(base, at), code.load(u, at)
        code.store(code.multiply_add(ratio, added, start), ubar, at)
        code.store(builder.fadd(before, added), u, at)


@instruction(None, types.intp, None, types.intp, None, None, None, None)
def step_tile(code: Code, tiles: Any, block: Any, ubar: Any, d: Any, numbers: Any, x: Any, v: Any, vbar: Any) -> None:
    """Step the columns of a tile.

    - tiles, block: Shape (blocks, depth, width), and the tile's number.
    - ubar, d: Shape (depth,), and how many rows of the tile are not padding.
    - numbers: Four: with z = x + number_0 tile^T ubar, x becomes z moved towards 0 by number_1 and multiplied by
      number_2.
    - x: Shape (blocks, width), updated.
    - v, vbar: Shape (depth,): the tile times the change of x is added to v, and number_3 times that product to v as it
      was is vbar.
    """
    builder, (_, depth, width) = code.builder, code.shape(0)
    tile = builder.gep(tiles, [builder.mul(builder.mul(block, depth), width)])
    coefficients = builder.gep(x, [builder.mul(block, width)])
    slope, threshold, shrink, extrapolation = map(code.spread, cgutils.unpack_tuple(builder, numbers))

    def step_strip(count: int, first: Any, base: Any) -> None:
        """Step `count` vectors of columns from the column `first` on."""
        products = [code.zero() for _ in range(count)]
        with cgutils.for_range(builder, d) as loop:
            factor = code.spread(builder.load(builder.gep(ubar, [loop.index])))
            at = builder.add(builder.mul(loop.index, width), first)
            for k, product in enumerate(products):
                builder.store(code.multiply_add(factor, code.load(tile, at, k), builder.load(product)), product)
        changes = []
        for k, product in enumerate(products):
            before = code.load(coefficients, first, k)
            moved = code.multiply_add(slope, builder.load(product), before)
            above, below = builder.fsub(moved, threshold), builder.fadd(moved, threshold)
            above = builder.select(builder.fcmp_ordered("<", above, code.none), code.none, above)
            below = builder.select(builder.fcmp_ordered(">", below, code.none), code.none, below)
            after = builder.fmul(builder.fadd(above, below), shrink)
            code.store(after, coefficients, first, k)
            changes.append(builder.fsub(after, before))
        with cgutils.for_range(builder, builder.udiv(depth, depth.type(LANES))) as loop:
            to = builder.mul(loop.index, depth.type(LANES))
            sums = []
            for r in range(LANES):
                at = builder.add(builder.mul(builder.add(to, to.type(r)), width), first)
                total = builder.fmul(code.load(tile, at), changes[0])
                for k in range(1, count):
                    total = code.multiply_add(code.load(tile, at, k), changes[k], total)
                sums.append(total)
            added = code.totals(sums)
            start, before = code.load(base, to), code.load(v, to)
            code.store(code.multiply_add(extrapolation, added, start), vbar, to)
            code.store(builder.fadd(before, added), v, to)

    vectors = builder.udiv(width, width.type(LANES))
    with cgutils.for_range_slice(builder, vectors.type(0), vectors, vectors.type(_MOST), vectors.type) as (first, _):
        # The first strip begins from v: xbar steps from x.
        base = builder.select(builder.icmp_signed("==", first, first.type(0)), v, vbar)
        column = builder.mul(first, first.type(LANES))
        left = builder.sub(vectors, first)
        most = left.type(_MOST)
        done = builder.append_basic_block("stepped")
        switch = builder.switch(builder.select(builder.icmp_signed("<", left, most), left, most), done)
        for count in range(1, _MOST + 1):
            case = builder.append_basic_block(f"of_{count}_vectors")
            switch.add_case(left.type(count), case)
            with builder.goto_block(case):
                step_strip(count, column, base)
                builder.branch(done)
        builder.position_at_end(done)


@jit
def prefetch_part(array: Array, first: int, last: int) -> None:
    """Have array.ravel()[first:last], of numbers of 8 bytes or less, fetched into the cache."""
    for index in range(first, last, LANES):
        prefetch(array, index)
    if first < last:
        prefetch(array, last - 1)


@jit
def prefetch_row(A: Array, i: int) -> None:
    """Have row i of a matrix fetched into the cache."""
    prefetch_part(A, i * A.shape[1], (i + 1) * A.shape[1])
