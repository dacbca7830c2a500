"""Instructions that numba has no name for, or calls a library for: one each, so that loops stay in vector lanes."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def _popcount(_context: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: ir.IRBuilder, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint32(types.uint32), generate


@intrinsic
def _rint(_context: Any, number: Any) -> Any:
    return number(number), _calls("llvm.rint")


@intrinsic
def _copysign(_context: Any, size: Any, sign: Any) -> Any:
    return size(size, sign), _calls("llvm.copysign")


@intrinsic
def _multiply_add(_context: Any, a: Any, b: Any, c: Any) -> Any:
    return c(a, b, c), _calls("llvm.fmuladd")


@intrinsic
def _wide(_context: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, _signature: Any, _arguments: Any) -> Any:
        # llvmlite knows the attributes without a value by name and refuses others.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _prefetch(_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        law = ir.FunctionType(ir.VoidType(), [pointer, whole, whole, whole])
        name = "llvm.prefetch.p0i8"
        function = builder.module.globals.get(name) or ir.Function(builder.module, law, name)
        # To be read, soon and more than once, as data.
        builder.call(function, [place, whole(0), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


@intrinsic
def _add_four(_context: Any, sums: Any, place: Any, terms: Any, start: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        pointers = [_four(context, builder, signature.args[i], *arguments[i : i + 2]) for i in (0, 2)]
        total, term = (builder.load(pointer, align=8) for pointer in pointers)
        builder.store(builder.fadd(total, term), pointers[0], align=8)
        return context.get_dummy_value()

    return types.void(sums, place, terms, start), generate


@intrinsic
def _dot_four(_context: Any, a: Any, b: Any, c: Any, place: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        factors = [
            builder.load(_four(context, builder, signature.args[i], arguments[i], arguments[3]), align=8)
            for i in range(3)
        ]
        products = builder.fmul(builder.fmul(factors[0], factors[1]), factors[2])
        parts = [builder.extract_element(products, ir.Constant(ir.IntType(32), i)) for i in range(4)]
        return builder.fadd(builder.fadd(parts[0], parts[2]), builder.fadd(parts[1], parts[3]))

    return types.float64(a, b, c, place), generate


@intrinsic
def _subtract_four(_context: Any, data: Any, _at: Any, a: Any, _at_a: Any, b: Any, _at_b: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        pointers = [_four(context, builder, signature.args[i], *arguments[i : i + 2]) for i in (0, 2, 4)]
        own, one, other = (builder.load(pointer, align=8) for pointer in pointers)
        law = ir.FunctionType(own.type, [own.type] * 3)
        name = "llvm.fmuladd.v4f64"
        fuse = builder.module.globals.get(name) or ir.Function(builder.module, law, name)
        builder.store(builder.call(fuse, [builder.fneg(one), other, own]), pointers[0], align=8)
        return context.get_dummy_value()

    whole = types.intp
    return types.void(data, whole, a, whole, b, whole), generate


def _four(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: Any) -> Any:
    """A pointer to the four float64 that begin at an element of an array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(ir.DoubleType(), 4).as_pointer())


def _calls(name: str) -> Any:
    """Code of an intrinsic of LLVM whose arguments and result are floats of one type."""

    def generate(_context: Any, builder: ir.IRBuilder, _signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        signature = ir.FunctionType(kind, [kind] * len(arguments))
        return builder.call(builder.module.declare_intrinsic(name, [kind], signature), arguments)

    return generate


# Typed as what they are to their callers: mypy reads the definitions, which also take numba's context.

#: Whose function calls this, its loops take the widest vectors that the machine has. LLVM takes half of them where
#: wide ones slow the clock for a while, which the long loops of the hot path outlast.
wide: Any = _wide
#: Has the cache line fetched that holds an element of a contiguous array, given by its number in the array: its reader
#: does not wait for memory. It changes no value.
prefetch: Any = _prefetch
#: Add four elements of a contiguous array of float64, from one given by its number in the array, to four of another.
add_four: Any = _add_four
#: The sum of four products of three factors each, from the same element of three contiguous arrays of float64.
dot_four: Any = _dot_four
#: Subtract from four elements of a contiguous array of float64 the products of four of another with four of a third.
#: Each array comes with the number of the first of its four.
subtract_four: Any = _subtract_four
#: Bits set in a uint32.
popcount: Any = _popcount
#: The nearest whole number, exact however large.
rint: Any = _rint
#: The first number with the second's sign.
copysign: Any = _copysign
#: a b + c, rounded once where the machine has such an instruction and twice where it has none: the same in vector lanes
#: and outside, so on one machine always the same bits.
multiply_add: Any = _multiply_add
