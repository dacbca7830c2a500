"""Sixteen float32 side by side: the steps of a Walsh-Hadamard transform, and sums of products, as vector instructions.

Loops over sixteen elements inside loops over a few hundred rows are what compilers do worst; so these are written as
vectors at once, which every target splits or keeps as it can. They only add, subtract and flip signs: the bits are the
same on all of them.
"""

# mypy: disable-error-code="no-untyped-call"

from typing import Any

from llvmlite import ir
from numba import types

from streamkernel.compute.vectors import BITS, FLOATS, Code, instruction

#: Elements of a vector, and of a dot product.
LANES, DOT = 16, 256


def _places(code: Code, at: Any, step: Any, n: int) -> list[Any]:
    """The indexes of n vectors, a step apart."""
    places = [at]
    for _ in range(n - 1):
        places.append(code.builder.add(places[-1], step))
    return places


def _transform(code: Code, values: list[Any], data: Any, places: list[Any]) -> None:
    """Store the Walsh-Hadamard transform among some vectors, a power of two, at these places."""
    distance = 1
    while distance < len(values):
        for i in range(len(values)):
            if not i & distance:
                a, b = values[i], values[i + distance]
                values[i], values[i + distance] = code.builder.fadd(a, b), code.builder.fsub(a, b)
        distance *= 2
    for value, place in zip(values, places, strict=True):
        code.store(value, data, place)


@instruction(None, types.intp, types.float32, vector=FLOATS)
def fill(code: Code, data: Any, at: Any, value: Any) -> None:
    """One number into the lanes from `at` on."""
    code.store(code.spread(value), data, at)


def _butterflies(n: int) -> Any:
    @instruction(None, types.intp, types.intp, vector=FLOATS)
    def transform(code: Code, data: Any, at: Any, step: Any) -> None:
        """The transform among n vectors, the first at `at`, a step apart."""
        places = _places(code, at, step, n)
        _transform(code, [code.load(data, place) for place in places], data, places)

    return transform


two, four, eight, sixteen = map(_butterflies, (2, 4, 8, 16))


@instruction(None, types.intp, None, types.intp, types.intp, vector=FLOATS)
def signed_sixteen(code: Code, data: Any, at: Any, words: Any, word: Any, bit: Any) -> None:
    """The transform among the sixteen vectors from `at` on, each of which first takes signs.

    Of the uint32 lanes from `word` on, the first takes the bit that `bit` shifts to the top, the next those below it.
    """
    builder, bits = code.builder, code.of(BITS)
    signs = builder.shl(bits.load(words, word), bits.spread(builder.trunc(bit, ir.IntType(32))))
    top = ir.Constant(BITS, [1 << 31] * LANES)
    places, values = _places(code, at, at.type(LANES), 16), []
    for place in places:
        values.append(builder.bitcast(builder.xor(bits.load(data, place), builder.and_(signs, top)), FLOATS))
        signs = builder.add(signs, signs)  # the next bit comes to the top
    _transform(code, values, data, places)


@instruction(None, types.intp, types.intp, None, types.intp, None, types.intp, vector=FLOATS)
def add_four_dots(code: Code, rows: Any, at: Any, step: Any, other: Any, place: Any, sums: Any, at_sum: Any) -> None:
    """Add to four sums (float64), from `at_sum` on, the products of `DOT` elements of four rows with those of another.

    The first row is from `at` on and the next a step apart; the other is from `place` on.
    """
    builder = code.builder
    # Two sums of each row, in turns: each waits for its last product.
    totals = [[code.none, code.none] for _ in range(4)]
    for chunk in range(DOT // LANES):
        ahead = at.type(chunk * LANES)
        factor = code.load(other, builder.add(place, ahead))
        for total, row in zip(totals, _places(code, builder.add(at, ahead), step, 4), strict=True):
            total[chunk % 2] = code.multiply_add(code.load(rows, row), factor, total[chunk % 2])
    for row, (even, odd) in enumerate(totals):
        pointer = builder.gep(sums, [builder.add(at_sum, at.type(row))])
        total = builder.fpext(_sum_of_lanes(builder, builder.fadd(even, odd)), ir.DoubleType())
        builder.store(builder.fadd(builder.load(pointer), total), pointer)


def _sum_of_lanes(builder: ir.IRBuilder, vector: Any) -> Any:
    """The sum of the lanes, halves first."""
    n = LANES // 2
    while n:
        order = ir.Constant(BITS, [(i + n) % LANES for i in range(LANES)])
        vector = builder.fadd(vector, builder.shuffle_vector(vector, vector, order))
        n //= 2
    return builder.extract_element(vector, ir.IntType(32)(0))
