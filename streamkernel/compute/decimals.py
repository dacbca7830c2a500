"""Text to float64, correctly rounded: a decimal number becomes the nearest binary one, of two as near the even one.

This is the way of Eisel and Lemire (2021): the digits as one integer, times a power of five of 128 bits. Mushtak and
Lemire (2023) prove that these bits are enough for integers below 2^64.

Functions take addresses: arrays would be counted at every call, which takes longer than to read a number.
"""

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.vectors import Code, instruction

#: Bytes of a word, and digits that it holds as an integer, whatever they are.
WORD, MOST_DIGITS = 8, 19
_MOST_EXPONENT_DIGITS = 6
_SMALLEST, _LARGEST = -342, 308
# From here on, a power of five with a negative exponent is rounded up, so that ties are seen.
_EXACT = -27
_MINUS, _PLUS, _POINT, _NOUGHT, _E, _SMALL = 45, 43, 46, 48, 101, 32
_U = np.uint64
_ZERO, _ONE, _TEN, _BYTE = _U(0), _U(1), _U(10), _U(8)
_TENS = np.array([10**k for k in range(WORD + 1)], np.uint64)
_ZEROS, _NOT_DIGITS, _HIGHS = _U(0x3030303030303030), _U(0x7676767676767676), _U(0x8080808080808080)
# Eight digits become four pairs, two fours, one number.
_PAIRS, _FIRST, _SECOND, _TWO_BYTES, _HALF = _U(0xFF000000FF), _U(0xF424000000064), _U(0x271000000001), _U(16), _U(32)
# Of float64: the bits of a fraction, the exponent of what is infinite, and the bits of a product beyond a fraction's.
_FRACTION, _INFINITE, _BEYOND = _U(52), _U(0x7FF), _U(0x1FF)
_WHOLE_BELOW = _U(1 << 63)
_LONG = ir.IntType(64)


def powers_of_five() -> Array:
    """The first 128 bits of 5^q for q from -342 to 308, high and low, uint64 of shape (651, 2)."""
    numbers = []
    for q in range(_SMALLEST, _LARGEST + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()
        number = power << 128 >> bits if q >= 0 else (1 << 127 + bits) // power + (q >= _EXACT)
        numbers.append((number >> 64, number & (1 << 64) - 1))
    return np.array(numbers, np.uint64)


@instruction()
def inlined(code: Code) -> None:
    """Let the calling function become part of its callers."""
    code.builder.function.attributes.add("alwaysinline")


@instruction(types.intp, returns=types.uint64)
def load_word(code: Code, address: Any) -> Any:
    """Eight bytes in memory, the first one lowest."""
    word = code.builder.load(code.builder.inttoptr(address, _LONG.as_pointer()), align=1)
    return word if sys.byteorder == "little" else code.builder.bswap(word)


@instruction(types.intp, returns=types.intp)
def load_byte(code: Code, address: Any) -> Any:
    """A byte in memory."""
    return code.builder.zext(code.builder.load(code.builder.inttoptr(address, ir.IntType(8).as_pointer())), _LONG)


@instruction(types.uint64, types.uint64, returns=types.uint64)
def high_product(code: Code, a: Any, b: Any) -> Any:
    """The upper half of a product of 128 bits."""
    builder, wide = code.builder, ir.IntType(128)
    product = builder.mul(builder.zext(a, wide), builder.zext(b, wide))
    return builder.trunc(builder.lshr(product, wide(64)), _LONG)


@instruction(types.uint64, returns=types.int64)
def leading_zeros(code: Code, word: Any) -> Any:
    """Bits before the first one that is set; the word is not 0."""
    return code.builder.ctlz(word, ir.IntType(1)(1))


@instruction(types.uint64, returns=types.int64)
def first_byte(code: Code, word: Any) -> Any:
    """The first byte of a word that is not 0; one is not."""
    return code.builder.lshr(code.builder.cttz(word, ir.IntType(1)(1)), _LONG(3))


@instruction(types.uint64, returns=types.float64)
def float_of_bits(code: Code, bits: Any) -> Any:
    """The float64 of its bits."""
    return code.builder.bitcast(bits, ir.DoubleType())


@jit
def word_at(at: int, end: int) -> Any:
    """Eight bytes in memory, zeros for those from `end` on; eight before `end` can be read."""
    inlined()
    if at + WORD <= end:
        return load_word(at)
    return load_word(end - WORD) >> _U(8 * (WORD - 1 - (end - at))) >> _BYTE


@jit
def is_next(at: int, end: int, byte: int) -> bool:
    """Whether a byte is next."""
    inlined()
    return at < end and load_byte(at) == byte


@jit
def nearest_float(w: Any, q: int, powers: int) -> Any:
    """The float nearest to w 10^q, for w < 2^64; NaN where that is infinite."""
    inlined()
    if w == _ZERO or q < _SMALLEST:
        return 0.0
    if q > _LARGEST:
        return np.nan
    zeros = leading_zeros(w)
    w <<= _U(zeros)
    power = powers + 2 * WORD * (q - _SMALLEST)
    high, low = high_product(w, load_word(power)), w * load_word(power)
    if high & _BEYOND == _BEYOND:
        more = high_product(w, load_word(power + WORD))
        low += more
        high += _U(low < more)
    upper = high >> _U(63)
    shift = upper + _U(9)
    fraction = high >> shift
    # 217706 / 2^16 is the binary logarithm of 10.
    exponent = (217706 * q >> 16) + 1086 + np.int64(upper) - zeros
    if exponent <= 0:
        if exponent < -62:
            return 0.0
        fraction >>= _U(1 - exponent)
        return float_of_bits((fraction + (fraction & _ONE)) >> _ONE)
    # No other product than these is halfway between two floats.
    if low <= _ONE and -4 <= q <= 23 and fraction & _U(3) == _ONE and fraction << shift == high:
        fraction -= _ONE
    # The first bit of the fraction, or one beyond it after rounding up, adds to the exponent.
    bits = (_U(exponent - 1) << _FRACTION) + ((fraction + (fraction & _ONE)) >> _ONE)
    return float_of_bits(bits) if bits >> _FRACTION < _INFINITE else np.nan


@jit
def of_eight(word: Any) -> Any:
    """The number of eight digits."""
    inlined()
    word = word * _TEN + (word >> _BYTE)
    return ((word & _PAIRS) * _FIRST + ((word >> _TWO_BYTES) & _PAIRS) * _SECOND) >> _HALF


@jit
def read_digits(at: int, end: int, w: Any) -> Any:
    """Where digits end, and w with these digits after its own, modulo 2^64."""
    inlined()
    word = word_at(at, end) ^ _ZEROS
    others = ((word + _NOT_DIGITS) | word) & _HIGHS
    while not others:
        w = w * _TENS[WORD] + of_eight(word)
        at += WORD
        word = word_at(at, end) ^ _ZEROS
        others = ((word + _NOT_DIGITS) | word) & _HIGHS
    n = first_byte(others)
    if n:
        w = w * _TENS[n] + of_eight(word << _U(8 * (WORD - n)))
    return at + n, w


@jit
def nearest_of_many(at: int, end: int, q: int, powers: int) -> Any:
    """`nearest_float` of digits, among which there may be a point; NaN where the first 19 do not decide it."""
    w, kept = _ZERO, 0
    for k in range(at, end):
        digit = load_byte(k) - _NOUGHT
        if digit >= 0 and (kept or digit):
            if kept < MOST_DIGITS:
                w = w * _TEN + _U(digit)
            kept += 1
    q += max(0, kept - MOST_DIGITS)
    value = nearest_float(w, q, powers)
    return value if kept <= MOST_DIGITS or value == nearest_float(w + _ONE, q, powers) else np.nan


@jit
def read_number(at: int, end: int, strict: bool, powers: int) -> Any:
    """Where a number ends, and its value; where it begins, if there is none, and NaN where its value is not known here.

    `strict` is JSON with integers of up to 64 bits. Else it is what Python's float takes, without blanks, underscores
    and words.
    """
    start = at
    negative = is_next(at, end, _MINUS)
    if negative or (is_next(at, end, _PLUS) and not strict):
        at += 1
    first = at
    # One digit before a point is what is usual.
    if is_next(at + 1, end, _POINT) and _NOUGHT <= load_byte(at) < _NOUGHT + 10:
        w = _U(load_byte(at) - _NOUGHT)
        at += 1
    else:
        at, w = read_digits(at, end, _ZERO)
    n, q = at - first, 0
    if strict and (n == 0 or (n > 1 and load_byte(first) == _NOUGHT)):
        return start, np.nan
    whole = not is_next(at, end, _POINT)
    if not whole:
        q = at + 1
        at, w = read_digits(at + 1, end, w)
        q -= at
        n -= q
    if n == 0 or (strict and not whole and q == 0):
        return start, np.nan
    last = at
    if at < end and load_byte(at) | _SMALL == _E:
        whole = False
        down = is_next(at + 1, end, _MINUS)
        begin = at + 2 if down or is_next(at + 1, end, _PLUS) else at + 1
        at, exponent = read_digits(begin, end, _ZERO)
        if at == begin:
            return start, np.nan
        if at - begin > _MOST_EXPONENT_DIGITS:
            return at, np.nan
        q += int(-np.int64(exponent) if down else np.int64(exponent))
    if whole and strict:
        known = n <= MOST_DIGITS and w < _WHOLE_BELOW and not (negative and w == _ZERO)
        value = float(np.int64(w)) if known else np.nan
    else:
        value = nearest_float(w, q, powers) if n <= MOST_DIGITS else nearest_of_many(first, last, q, powers)
    return at, -value if negative else value
