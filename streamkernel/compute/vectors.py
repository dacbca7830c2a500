"""Instructions written for LLVM: vectors that numba does not make of loops, and what it has no fast name for.

Where a machine's vectors are shorter LLVM takes several: the functions are the same.
"""

# mypy: disable-error-code="no-untyped-call"

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from streamkernel.compute.jit import Array

#: Numbers in a vector of float64.
LANES = 8

#: Vectors of eight and of four float64, of sixteen float32, and of as many uint32.
EIGHT, FOUR = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.DoubleType(), 4)
FLOATS, BITS = ir.VectorType(ir.FloatType(), 16), ir.VectorType(ir.IntType(32), 16)
# Interleave two vectors by lanes, by pairs of lanes, and by halves: three such steps add up each of eight vectors.
_FOLDS = (
    ((0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
    ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)


class Code:
    """Instructions on vectors of one kind, put at a builder's position."""

    def __init__(self, context: Any, builder: ir.IRBuilder, shapes: list[Any], vector: ir.VectorType) -> None:
        self.context, self.builder, self.shapes, self.vector = context, builder, shapes, vector
        self._align = 8 if isinstance(vector.element, ir.DoubleType) else 4

    def of(self, vector: ir.VectorType) -> "Code":
        """The same for vectors of another kind."""
        return Code(self.context, self.builder, self.shapes, vector)

    def shape(self, place: int) -> list[Any]:
        """The shape of an array that is an argument."""
        return list(cgutils.unpack_tuple(self.builder, self.shapes[place]))

    def load(self, data: Any, at: Any, vector: int = 0) -> Any:
        """Load a vector: number `vector` after the one at an index."""
        return self.builder.load(self._address(data, at, vector), align=self._align)

    def store(self, value: Any, data: Any, at: Any, vector: int = 0) -> None:
        """Store a vector: number `vector` after the one at an index."""
        self.builder.store(value, self._address(data, at, vector), align=self._align)

    def _address(self, data: Any, at: Any, vector: int) -> Any:
        index = self.builder.add(at, at.type(self.vector.count * vector))
        return self.builder.bitcast(self.builder.gep(data, [index]), self.vector.as_pointer())

    def spread(self, number: Any) -> Any:
        """A vector of one number."""
        whole, count = ir.IntType(32), self.vector.count
        alone = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), number, whole(0))
        return self.builder.shuffle_vector(alone, alone, ir.Constant(ir.VectorType(whole, count), [0] * count))

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c, rounded once where the machine can."""
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fmuladd.v{self.vector.count}f{8 * self._align}"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [a, b, c])

    @property
    def none(self) -> Any:
        """A vector of zeros."""
        return ir.Constant(self.vector, [0.0] * self.vector.count)

    def zero(self) -> Any:
        """A variable that is a vector of zeros."""
        variable = cgutils.alloca_once(self.builder, self.vector)
        self.builder.store(self.none, variable)
        return variable

    def totals(self, vectors: list[Any]) -> Any:
        """The sums of eight vectors of eight, as one."""
        for folds in _FOLDS:
            low, high = (ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(fold)) for fold in folds)
            vectors = [
                self.builder.fadd(self.builder.shuffle_vector(a, b, low), self.builder.shuffle_vector(a, b, high))
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return vectors[0]


def instruction(*kinds: Any, returns: Any = types.void, vector: ir.VectorType = EIGHT) -> Callable[..., Any]:
    """Let compiled code call what a function writes: it gets `Code` and the arguments, arrays by their addresses.

    - kinds: The type of each argument; None takes any.
    - returns: The type of the result; None is that of the last argument.
    - vector: The vectors of `Code`.
    """

    def made(write: Callable[..., Any]) -> Any:
        def typed(_context: Any, *given: Any) -> Any:
            signature = (returns or given[-1])(*(kind or own for kind, own in zip(kinds, given, strict=True)))

            def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
                shapes, values = [], []
                for kind, value in zip(signature.args, arguments, strict=True):
                    array = context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else None
                    shapes.append(array and array.shape)
                    values.append(array.data if array else value)
                result = write(Code(context, builder, shapes, vector), *values)
                return context.get_dummy_value() if returns is types.void else result

            return signature, generate

        names = ["_context", *(f"argument_{k}" for k in range(len(kinds)))]
        plain = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        setattr(typed, "__signature__", inspect.Signature(plain))  # noqa: B010 - numba reads it
        typed.__name__, typed.__doc__ = write.__name__, write.__doc__
        return intrinsic(typed)

    return made


def aligned_zeros(*shape: int, dtype: type[np.floating[Any]] = np.float64) -> Array:
    """Zeros whose first number begins a line of the cache."""
    size = math.prod(shape)
    line = 8 * LANES // np.dtype(dtype).itemsize
    memory = np.zeros(size + line, dtype)
    first = -(memory.ctypes.data // memory.itemsize) % line
    return memory[first : first + size].reshape(shape)


@instruction(None, returns=None)
def popcount(code: Code, word: Any) -> Any:
    """Bits set in an unsigned whole number, of its type."""
    return code.builder.ctpop(word)


@instruction(None, types.intp, types.float32, returns=types.intp, vector=FLOATS)
def last_below(code: Code, data: Any, at: Any, bound: Any) -> Any:
    """Which of the sixteen float32 from an index on is the last below a bound; -1 for none."""
    builder, whole = code.builder, at.type
    below = builder.fcmp_ordered("<", code.load(data, at), code.spread(bound))
    bits = builder.zext(builder.bitcast(below, ir.IntType(16)), whole)
    return builder.sub(whole(whole.width - 1), builder.ctlz(bits, ir.IntType(1)(0)))


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
