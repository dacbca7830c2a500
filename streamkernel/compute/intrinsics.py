"""Instructions that numba has no name for, or calls a library for: one each, so that loops stay in vector lanes."""

# mypy: disable-error-code="no-untyped-call"

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from streamkernel.compute.vectors import FOUR, Code, instruction


@instruction(types.uint32, returns=types.uint32)
def popcount(code: Code, word: Any) -> Any:
    """Bits set in a uint32."""
    return code.builder.ctpop(word)


@instruction(None, returns=None)
def rint(code: Code, number: Any) -> Any:
    """The nearest whole number, exact however large."""
    return _call(code, "llvm.rint", number)


@instruction(None, None, returns=None)
def copysign(code: Code, size: Any, sign: Any) -> Any:
    """The first number with the second's sign."""
    return _call(code, "llvm.copysign", size, sign)


@instruction(None, None, None, returns=None)
def multiply_add(code: Code, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once where the machine has such an instruction and twice where it has none.

    It is the same in vector lanes and outside, so on one machine always the same bits.
    """
    return _call(code, "llvm.fmuladd", a, b, c)


def _call(code: Code, name: str, *numbers: Any) -> Any:
    """A call of LLVM's function, with arguments and a result of one type."""
    kind = numbers[0].type
    function = ir.FunctionType(kind, [kind] * len(numbers))
    return code.builder.call(code.builder.module.declare_intrinsic(name, [kind], function), numbers)


@instruction()
def wide(code: Code) -> None:
    """Let the loops of the calling function take the widest vectors that the machine has.

    LLVM takes half of them where wide ones slow the clock for a while, which the long loops of the hot path outlast.
    """
    # llvmlite knows the attributes without a value by name and refuses others.
    set.add(code.builder.function.attributes, '"prefer-vector-width"="512"')


@instruction(None, None)
def prefetch(code: Code, data: Any, index: Any) -> None:
    """Fetch the cache line of an element of a contiguous array, given by its number in the array.

    Its reader does not wait for memory. It changes no value.
    """
    pointer, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
    place = code.builder.bitcast(code.builder.gep(data, [index]), pointer)
    kind = ir.FunctionType(ir.VoidType(), [pointer, whole, whole, whole])
    function = cgutils.get_or_insert_function(code.builder.module, kind, "llvm.prefetch.p0i8")
    # To be read, soon and more than once, as data.
    code.builder.call(function, [place, whole(0), whole(3), whole(1)])


@instruction(None, None, None, None, vector=FOUR)
def add_four(code: Code, sums: Any, place: Any, terms: Any, start: Any) -> None:
    """Add four elements of a contiguous array of float64, from number `start` on, to four of another."""
    code.store(code.builder.fadd(code.load(sums, place), code.load(terms, start)), sums, place)


@instruction(None, None, None, None, returns=types.float64, vector=FOUR)
def dot_four(code: Code, a: Any, b: Any, c: Any, place: Any) -> Any:
    """The sum of four products of three factors each, from the same element of three contiguous arrays of float64."""
    builder = code.builder
    products = builder.fmul(builder.fmul(code.load(a, place), code.load(b, place)), code.load(c, place))
    parts = [builder.extract_element(products, ir.IntType(32)(i)) for i in range(4)]
    return builder.fadd(builder.fadd(parts[0], parts[2]), builder.fadd(parts[1], parts[3]))


@instruction(None, types.intp, None, types.intp, None, types.intp, vector=FOUR)
def subtract_four(code: Code, data: Any, at: Any, a: Any, at_a: Any, b: Any, at_b: Any) -> None:
    """Subtract from four elements of an array the products of four of another with four of a third.

    All are contiguous, of float64. Each comes with the number of the first of its four.
    """
    own, one, other = code.load(data, at), code.load(a, at_a), code.load(b, at_b)
    code.store(code.multiply_add(code.builder.fneg(one), other, own), data, at)
