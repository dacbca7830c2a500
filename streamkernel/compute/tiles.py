"""Products of a row, and of a tile of columns, eight numbers at a time: what an iteration on two factors consists of.

A loop over a few vectors spends more on its beginning and its end than on what it computes. Here as many columns as a
tile mostly has stay in registers, which numba's loops over arrays do not do. All arrays are float64, contiguous, and of
whole vectors, padded with zeros. Where a machine's vectors are shorter LLVM takes several: the functions are the same.
"""

# mypy: disable-error-code="no-untyped-call"

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamkernel.compute.intrinsics import prefetch
from streamkernel.compute.jit import jit
from streamkernel.compute.vectors import LANES, Code

Array = np.ndarray[Any, np.dtype[Any]]

# Vectors of columns that are in registers at a time.
_MOST = 8


@intrinsic
def _row_product(_context: Any, A: Any, _i: Any, v: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = Code(context, builder, signature, arguments)
        (rows, (_, size)), (data, _) = code.array(0), code.array(2)
        first = builder.mul(arguments[1], size)
        total = code.zero()
        with cgutils.for_range(builder, builder.udiv(size, size.type(LANES))) as loop:
            at = builder.mul(loop.index, size.type(LANES))
            product = code.multiply_add(
                code.load(rows, builder.add(first, at)), code.load(data, at), builder.load(total)
            )
            builder.store(product, total)
        sums = code.totals([builder.load(total)] * LANES)
        return builder.extract_element(sums, ir.IntType(32)(0))

    return types.float64(A, types.intp, v), generate


@intrinsic
def _add_row(_context: Any, A: Any, _i: Any, _factor: Any, _ratio: Any, base: Any, u: Any, ubar: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = Code(context, builder, signature, arguments)
        (rows, (_, size)), base_data, u_data, ubar_data = code.array(0), *(code.array(k)[0] for k in (4, 5, 6))
        first = builder.mul(arguments[1], size)
        factor_, ratio_ = code.spread(arguments[2]), code.spread(arguments[3])
        with cgutils.for_range(builder, builder.udiv(size, size.type(LANES))) as loop:
            at = builder.mul(loop.index, size.type(LANES))
            added = builder.fmul(factor_, code.load(rows, builder.add(first, at)))
            start, before = code.load(base_data, at), code.load(u_data, at)
            code.store(code.multiply_add(ratio_, added, start), ubar_data, at)
            code.store(builder.fadd(before, added), u_data, at)
        return context.get_dummy_value()

    return types.void(A, types.intp, types.float64, types.float64, base, u, ubar), generate


@intrinsic
def _step_tile(
    _context: Any, tiles: Any, _block: Any, ubar: Any, _d: Any, numbers: Any, x: Any, v: Any, vbar: Any
) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        code = Code(context, builder, signature, arguments)
        whole, (_, depth, width) = code.array(0)
        ubar_data, x_data, v_data, vbar_data = (code.array(k)[0] for k in (2, 5, 6, 7))
        block_ = arguments[1]
        tile = builder.gep(whole, [builder.mul(builder.mul(block_, depth), width)])
        coefficients = builder.gep(x_data, [builder.mul(block_, width)])
        slope, threshold, shrink, extrapolation = (
            code.spread(number) for number in cgutils.unpack_tuple(builder, arguments[4])
        )

        def step_strip(count: int, first: Any, base: Any) -> None:
            """Step `count` vectors of columns from the column `first` on."""
            products = [code.zero() for _ in range(count)]
            with cgutils.for_range(builder, arguments[3]) as loop:
                factor = code.spread(builder.load(builder.gep(ubar_data, [loop.index])))
                at = builder.add(builder.mul(loop.index, width), first)
                for k, product in enumerate(products):
                    builder.store(code.multiply_add(factor, code.load(tile, at, k), builder.load(product)), product)
            changes = []
            none = code.none
            for k, product in enumerate(products):
                before = code.load(coefficients, first, k)
                moved = code.multiply_add(slope, builder.load(product), before)
                above, below = builder.fsub(moved, threshold), builder.fadd(moved, threshold)
                above = builder.select(builder.fcmp_ordered("<", above, none), none, above)
                below = builder.select(builder.fcmp_ordered(">", below, none), none, below)
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
                start, before = code.load(base, to), code.load(v_data, to)
                code.store(code.multiply_add(extrapolation, added, start), vbar_data, to)
                code.store(builder.fadd(before, added), v_data, to)

        vectors = builder.udiv(width, width.type(LANES))
        with cgutils.for_range_slice(builder, vectors.type(0), vectors, vectors.type(_MOST), vectors.type) as (
            first,
            _,
        ):
            # The first strip begins from v: xbar steps from x.
            is_first = builder.icmp_signed("==", first, first.type(0))
            base = builder.select(is_first, v_data, vbar_data)
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
        return context.get_dummy_value()

    return types.void(tiles, types.intp, ubar, types.intp, numbers, x, v, vbar), generate


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


# Typed as what they are to their callers.

#: <A_i, v>, of A of shape (n, size).
row_product: Any = _row_product
#: ubar = base + ratio factor A_i, and u += factor A_i; arguments are A, i, factor, ratio, base, u, ubar.
add_row: Any = _add_row
#: Step the columns of a tile: arguments are tiles (blocks, depth, width), the block, ubar (depth,), d, how many rows of
#: the tile are not padding, four numbers, x (blocks, width), v and vbar (depth,). With z = x + number_0 tile^T ubar, x
#: becomes z moved towards 0 by number_1 and multiplied by number_2; the tile times its change is added to v, and
#: number_3 times that product to v as it was is vbar.
step_tile: Any = _step_tile
