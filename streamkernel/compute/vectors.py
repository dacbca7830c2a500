"""Vectors of eight float64, and instructions on them: what loops consist of that are written as vectors at once.

Where a machine's vectors are shorter LLVM takes several: the functions are the same.
"""

# mypy: disable-error-code="no-untyped-call"

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

Array = np.ndarray[Any, np.dtype[Any]]

#: Numbers in a vector.
LANES = 8

#: Its type.
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
# Interleave two vectors by lanes, by pairs of lanes, and by halves: three such steps add up each of eight vectors.
_FOLDS = (
    ((0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
    ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)


class Code:
    """Instructions on vectors, put at a builder's position."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> None:
        self.context, self.builder, self.signature, self.arguments = context, builder, signature, arguments

    def array(self, place: int) -> tuple[Any, list[Any]]:
        """Address and shape of an array that is an argument."""
        array = self.context.make_array(self.signature.args[place])(self.context, self.builder, self.arguments[place])
        return array.data, cgutils.unpack_tuple(self.builder, array.shape)

    def load(self, data: Any, at: Any, vector: int = 0) -> Any:
        """Load a vector: number `vector` after the one at an index."""
        return self.builder.load(self._address(data, at, vector), align=8)

    def store(self, value: Any, data: Any, at: Any, vector: int = 0) -> None:
        """Store a vector: number `vector` after the one at an index."""
        self.builder.store(value, self._address(data, at, vector), align=8)

    def _address(self, data: Any, at: Any, vector: int) -> Any:
        index = self.builder.add(at, at.type(LANES * vector))
        return self.builder.bitcast(self.builder.gep(data, [index]), VECTOR.as_pointer())

    def spread(self, number: Any) -> Any:
        """A vector of one number."""
        alone = self.builder.insert_element(ir.Constant(VECTOR, ir.Undefined), number, ir.IntType(32)(0))
        return self.builder.shuffle_vector(alone, alone, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c, rounded once where the machine can."""
        kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
        fma = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fmuladd.v{LANES}f64")
        return self.builder.call(fma, [a, b, c])

    @property
    def none(self) -> Any:
        """A vector of zeros."""
        return ir.Constant(VECTOR, [0.0] * LANES)

    def zero(self) -> Any:
        """A variable that is a vector of zeros."""
        variable = cgutils.alloca_once(self.builder, VECTOR)
        self.builder.store(self.none, variable)
        return variable

    def totals(self, vectors: list[Any]) -> Any:
        """The sums of eight vectors, as one."""
        for folds in _FOLDS:
            low, high = (ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(fold)) for fold in folds)
            vectors = [
                self.builder.fadd(self.builder.shuffle_vector(a, b, low), self.builder.shuffle_vector(a, b, high))
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return vectors[0]


def aligned_zeros(*shape: int, dtype: type[np.floating[Any]] = np.float64) -> Array:
    """Zeros whose first number begins a line of the cache."""
    size = math.prod(shape)
    line = 8 * LANES // np.dtype(dtype).itemsize
    memory = np.zeros(size + line, dtype)
    first = -(memory.ctypes.data // memory.itemsize) % line
    return memory[first : first + size].reshape(shape)
