"""Sixteen float32 side by side: the steps of a Walsh-Hadamard transform, and sums of products, as vector instructions.

Loops over sixteen elements inside loops over a few hundred rows are what compilers do worst; so these are written as
vectors at once, which every target splits or keeps as it can. They only add, subtract and flip signs: the bits are the
same on all of them.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: Elements of a vector, and of a dot product.
LANES, DOT = 16, 256

_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_BITS = ir.VectorType(ir.IntType(32), LANES)


def _at(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: Any, vector: ir.VectorType) -> Any:
    """A pointer to the vector that begins at an element of a one-dimensional array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _splat(builder: ir.IRBuilder, value: Any, vector: ir.VectorType) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(_BITS, [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


def _load(builder: ir.IRBuilder, pointer: Any) -> Any:
    return builder.load(pointer, align=4)


def _rows(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: Any, step: Any, n: int) -> list[Any]:
    """Pointers to n vectors, a step apart."""
    pointers = []
    for _ in range(n):
        pointers.append(_at(context, builder, kind, array, index, _FLOATS))
        index = builder.add(index, step)
    return pointers


def _transform(builder: ir.IRBuilder, values: list[Any], pointers: list[Any]) -> None:
    """The Walsh-Hadamard transform among some vectors, a power of two, stored where the pointers say."""
    distance = 1
    while distance < len(values):
        for i in range(len(values)):
            if not i & distance:
                a, b = values[i], values[i + distance]
                values[i], values[i + distance] = builder.fadd(a, b), builder.fsub(a, b)
        distance *= 2
    for value, pointer in zip(values, pointers, strict=True):
        builder.store(value, pointer, align=4)


@intrinsic
def _fill(_context: Any, data: Any, _index: Any, _value: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, index, number = arguments
        pointer = _at(context, builder, signature.args[0], array, index, _FLOATS)
        builder.store(_splat(builder, number, _FLOATS), pointer, align=4)
        return context.get_dummy_value()

    return types.void(data, types.intp, types.float32), generate


def _butterflies(n: int) -> Any:
    @intrinsic
    def transform(_context: Any, data: Any, _index: Any, _step: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            array, index, step = arguments
            pointers = _rows(context, builder, signature.args[0], array, index, step, n)
            _transform(builder, [_load(builder, pointer) for pointer in pointers], pointers)
            return context.get_dummy_value()

        return types.void(data, types.intp, types.intp), generate

    return transform


@intrinsic
def _signed_sixteen(_context: Any, data: Any, _index: Any, words: Any, _word: Any, _bit: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, index, bits, word, bit = arguments
        pointers = _rows(context, builder, signature.args[0], array, index, ir.Constant(index.type, LANES), 16)
        signs = _load(builder, _at(context, builder, signature.args[2], bits, word, _BITS))
        signs = builder.shl(signs, _splat(builder, builder.trunc(bit, ir.IntType(32)), _BITS))
        top = ir.Constant(_BITS, [1 << 31] * LANES)
        values = []
        for pointer in pointers:
            flipped = builder.xor(builder.bitcast(_load(builder, pointer), _BITS), builder.and_(signs, top))
            values.append(builder.bitcast(flipped, _FLOATS))
            signs = builder.add(signs, signs)  # the next bit comes to the top
        _transform(builder, values, pointers)
        return context.get_dummy_value()

    return types.void(data, types.intp, words, types.intp, types.intp), generate


@intrinsic
def _add_four_dots(
    _context: Any, rows: Any, _at_row: Any, _step: Any, other: Any, _place: Any, sums: Any, _at_sum: Any
) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, at, step, other, place, sums, at_sum = arguments
        fuse = _multiply_add(builder)
        zero = ir.Constant(_FLOATS, [0.0] * LANES)
        # Two sums of each row, in turns: each waits for its last product.
        totals = [[zero, zero] for _ in range(4)]
        for chunk in range(DOT // LANES):
            ahead = ir.Constant(at.type, chunk * LANES)
            here = builder.add(place, ahead)
            factor = _load(builder, _at(context, builder, signature.args[3], other, here, _FLOATS))
            pointers = _rows(context, builder, signature.args[0], array, builder.add(at, ahead), step, 4)
            for total, pointer in zip(totals, pointers, strict=True):
                total[chunk % 2] = builder.call(fuse, [_load(builder, pointer), factor, total[chunk % 2]])
        numbers = context.make_array(signature.args[5])(context, builder, sums).data
        for row, (even, odd) in enumerate(totals):
            pointer = builder.gep(numbers, [builder.add(at_sum, ir.Constant(at.type, row))])
            total = builder.fpext(_sum_of_lanes(builder, builder.fadd(even, odd)), ir.DoubleType())
            builder.store(builder.fadd(builder.load(pointer), total), pointer)
        return context.get_dummy_value()

    whole = types.intp
    return types.void(rows, whole, whole, other, whole, sums, whole), generate


def _multiply_add(builder: ir.IRBuilder) -> Any:
    """The function a b + c of vectors."""
    law = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
    name = f"llvm.fmuladd.v{LANES}f32"
    return builder.module.globals.get(name) or ir.Function(builder.module, law, name)


def _sum_of_lanes(builder: ir.IRBuilder, vector: Any) -> Any:
    """The sum of the lanes, halves first."""
    n = LANES // 2
    while n:
        order = [ir.Constant(ir.IntType(32), (i + n) % LANES) for i in range(LANES)]
        mask = ir.Constant(_BITS, order)
        vector = builder.fadd(vector, builder.shuffle_vector(vector, vector, mask))
        n //= 2
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


# Typed as what they are to their callers: mypy reads the definitions, which also take numba's context.

#: (data, at, value): one number into the lanes from `at` on.
fill: Any = _fill
#: (data, at, step): the transform among two, four, eight or sixteen vectors, the first at `at`, a step apart.
two: Any = _butterflies(2)
four: Any = _butterflies(4)
eight: Any = _butterflies(8)
sixteen: Any = _butterflies(16)
#: (data, at, words, word, bit): the transform among the sixteen vectors from `at` on, each of which first takes signs:
#: of the uint32 lanes from `word` on, the first takes the bit that `bit` shifts to the top, the next those below it.
signed_sixteen: Any = _signed_sixteen
#: (rows, at, step, other, place, sums, at_sum): add to four sums (float64), from `at_sum` on, the products of `DOT`
#: elements of four rows, the first from `at` on and the next a step apart, with those of another from `place` on.
add_four_dots: Any = _add_four_dots
