"""Sixteen float32 side by side: the steps of a Walsh-Hadamard transform as single vector instructions.

Loops over sixteen elements inside loops over a few hundred rows are what compilers do worst; so these are written as
vectors at once, which every target splits or keeps as it can. They only add, subtract and flip signs: the bits are the
same on all of them.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: Elements of a vector.
LANES = 16

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


def _butterfly(builder: ir.IRBuilder, a: Any, b: Any) -> tuple[Any, Any]:
    return builder.fadd(a, b), builder.fsub(a, b)


@intrinsic
def _fill(_context: Any, data: Any, _index: Any, _value: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, index, number = arguments
        pointer = _at(context, builder, signature.args[0], array, index, _FLOATS)
        builder.store(_splat(builder, number, _FLOATS), pointer, align=4)
        return context.get_dummy_value()

    return types.void(data, types.intp, types.float32), generate


@intrinsic
def _butterfly_two(_context: Any, data: Any, _index: Any, _step: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, index, distance = arguments
        pointers = [
            _at(context, builder, signature.args[0], array, where, _FLOATS)
            for where in (index, builder.add(index, distance))
        ]
        both = _butterfly(builder, *(_load(builder, pointer) for pointer in pointers))
        for value, pointer in zip(both, pointers, strict=True):
            builder.store(value, pointer, align=4)
        return context.get_dummy_value()

    return types.void(data, types.intp, types.intp), generate


def _butterfly_four(builder: ir.IRBuilder, values: list[Any], pointers: list[Any]) -> None:
    s, t = _butterfly(builder, values[0], values[1])
    u, v = _butterfly(builder, values[2], values[3])
    first, third = _butterfly(builder, s, u)
    second, fourth = _butterfly(builder, t, v)
    for value, pointer in zip((first, second, third, fourth), pointers, strict=True):
        builder.store(value, pointer, align=4)


def _four(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: Any, step: Any) -> list[Any]:
    pointers = []
    for _ in range(4):
        pointers.append(_at(context, builder, kind, array, index, _FLOATS))
        index = builder.add(index, step)
    return pointers


@intrinsic
def _butterflies(_context: Any, data: Any, _index: Any, _step: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        pointers = _four(context, builder, signature.args[0], *arguments)
        _butterfly_four(builder, [_load(builder, pointer) for pointer in pointers], pointers)
        return context.get_dummy_value()

    return types.void(data, types.intp, types.intp), generate


@intrinsic
def _signed_butterflies(_context: Any, data: Any, _index: Any, words: Any, _word: Any, _bit: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        array, index, bits, row, first = arguments
        pointers = _four(context, builder, signature.args[0], array, index, ir.Constant(index.type, LANES))
        signs = _load(builder, _at(context, builder, signature.args[2], bits, row, _BITS))
        top = ir.Constant(_BITS, [1 << 31] * LANES)
        shift = builder.sub(ir.Constant(ir.IntType(32), 31), builder.trunc(first, ir.IntType(32)))
        values = []
        for pointer in pointers:
            flips = builder.and_(builder.shl(signs, _splat(builder, shift, _BITS)), top)
            flipped = builder.xor(builder.bitcast(_load(builder, pointer), _BITS), flips)
            values.append(builder.bitcast(flipped, _FLOATS))
            shift = builder.sub(shift, ir.Constant(ir.IntType(32), 1))
        _butterfly_four(builder, values, pointers)
        return context.get_dummy_value()

    return types.void(data, types.intp, words, types.intp, types.intp), generate


# Typed as what they are to their callers: mypy reads the definitions, which also take numba's context.

#: (data, at, value): one number into the lanes from `at` on.
fill: Any = _fill
#: (data, at, step): a, b = a + b, a - b of the lanes from `at` and from `at + step` on.
butterfly: Any = _butterfly_two
#: (data, at, step): two rounds of butterflies among the lanes at `at` and the next three steps.
butterflies: Any = _butterflies
#: (data, at, words, word, bit): the same at the next three lanes, once the four have taken the signs that are the bits
#: from `bit` on of the uint32 lanes from `word` on.
signed_butterflies: Any = _signed_butterflies
