"""Raw records to columns: JSON objects and rows of CSV in one piece of memory, without a Python object for each value.

A record that is plain has all its values in the columns. One that is odd is left to a decoder: whatever a function is
not sure of is odd.

Texts, and other values that differ by how they are written, are words: numbered as they come, the same word of two
columns twice.

Functions take addresses: arrays would be counted at every call, which takes longer than to read a value.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from streamkernel.compute.decimals import (
    WORD,
    first_byte,
    inlined,
    is_next,
    load_byte,
    load_word,
    read_number,
    word_at,
)
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.vectors import Code, instruction

#: What a column takes: numbers, texts, true and false as numbers, any value as a word. Others are only checked.
NUMBERS, TEXTS, TRUTHS, WORDS = 1, 2, 4, 8
#: Words that are remembered, their bytes together, and those of one word.
MOST_WORDS, MOST_BYTES, LONGEST = 2**13, 2**20, 2**12
_SLOTS = 4 * MOST_WORDS
_MOST_LOOKS = 64
_NONE = -1
_U = np.uint64
_ONES, _HIGHS, _PRIME = _U(0x0101010101010101), _U(0x8080808080808080), _U(0x9E3779B97F4A7C15)
_ZERO, _ONE, _HALF = _U(0), _U(1), _U(32)
_QUOTE, _ESCAPE, _COMMA, _COLON, _OPEN, _CLOSE, _BLANK, _NINE, _E = b'"\\,:{} 9e'
_BLANKS, _ESCAPED = tuple(b" \t\r\n"), tuple(b'"\\/bfnrt')
# Of UTF-8: the first byte of a byte order mark, and the bits that bytes within a letter have.
_MARK, _LETTER, _WITHIN = 0xEF, 0xC0, 0x80
_TRUE, _NULL, _FALSE, _FOUR = (
    _U(int.from_bytes(word, "little")) for word in (b"true", b"null", b"fals", b"\xff\xff\xff\xff")
)


class Words(NamedTuple):
    """The words of all columns.

    - table: Where each begins and ends in the letters, its column and its hash, int64 of shape (`MOST_WORDS` + 1, 4).
    - slots: Numbers of words in the order of their hashes, int64; -1 where there is none.
    - letters: Their bytes; zeros fill up each to a multiple of 8.
    - total: How many there are, int64 of shape (1,).
    """

    table: Array
    slots: Array
    letters: Array
    total: Array


class Places(NamedTuple):
    """Addresses of what a scan reads and fills in, and how many columns and bytes of a key there are."""

    table: int
    slots: int
    letters: int
    total: int
    powers: int
    keys: int
    kinds: int
    numbers: int
    codes: int
    last: int
    n_columns: int
    stride: int


def no_words() -> Words:
    """Room for words."""
    table, letters = np.zeros((MOST_WORDS + 1, 4), np.int64), np.zeros(MOST_BYTES + LONGEST + WORD, np.uint8)
    return Words(table, np.full(_SLOTS, _NONE), letters, np.zeros(1, np.int64))


def packed_keys(names: list[bytes]) -> Array:
    """Keys of JSON, each with its length and the quote after it, uint64 of shape (K, words)."""
    # `same_bytes` reads a word more.
    width = (max(map(len, names), default=0) + 1) // WORD + 1
    packed = [(len(name) + 1).to_bytes(WORD, "little") + (name + b'"').ljust(width * WORD, b"\0") for name in names]
    return np.frombuffer(b"".join(packed), "<u8").astype(np.uint64).reshape(len(names), width + 1)


def places(words: Words, powers: Array, keys: Array, kinds: Array, numbers: Array, codes: Array, last: Array) -> Places:
    """Where things are.

    - powers: `powers_of_five`.
    - keys: `packed_keys` of the columns; for CSV, none.
    - kinds: What each column takes, int64 of shape (K,).
    - numbers, codes: float64 and int64 of shape (n, K), to be filled in; all NaN and -1.
    - last: The row that had each key last, int64 of shape (K,); all -1.
    """
    arrays = (*words, powers, keys, kinds, numbers, codes, last)
    return Places(*[*(one.ctypes.data for one in arrays), len(kinds), keys.shape[1] * WORD])


@instruction(types.intp, None)
def store(code: Code, place: Any, value: Any) -> None:
    """Put a number into memory."""
    code.builder.store(value, code.builder.inttoptr(place, value.type.as_pointer()))


@instruction(types.intp, returns=types.intp)
def load(code: Code, place: Any) -> Any:
    """An int64 in memory."""
    return code.builder.load(code.builder.inttoptr(place, ir.IntType(64).as_pointer()))


@jit
def find_stop(at: int, end: int, first: int, second: int, lowest: int) -> Any:
    """Where the first of two bytes, or one below `lowest`, is next, at most `end`; and whether all before is ASCII."""
    firsts, seconds, lows, beyond = _ONES * _U(first), _ONES * _U(second), _ONES * _U(lowest), _ZERO
    while at < end:
        word = word_at(at, end)
        one, other = word ^ firsts, word ^ seconds
        found = (((one - _ONES) & ~one) | ((other - _ONES) & ~other) | ((word - lows) & ~word)) & _HIGHS
        if found:
            n = first_byte(found)
            return min(at + n, end), (beyond | (word & ((_ONE << _U(8 * n)) - _ONE))) & _HIGHS == _ZERO
        beyond |= word
        at += WORD
    return end, beyond & _HIGHS == _ZERO


@jit
def same_bytes(at: int, end: int, other: int, length: int) -> Any:
    """Whether the next bytes before `end` are those of another place, where zeros fill up the last word."""
    inlined()
    while length >= WORD:
        if word_at(at, end) != load_word(other):
            return False
        at += WORD
        other += WORD
        length -= WORD
    return (word_at(at, end) ^ load_word(other)) & ((_ONE << _U(8 * length)) - _ONE) == _ZERO


@jit
def word_number(at: int, end: int, column: int, places: Places) -> Any:
    """The number of a word of a column, which is remembered; -1 where there is no room for it."""
    hashed = _U(column) * _PRIME + _U(end - at)
    for k in range(at, end, WORD):
        hashed = (hashed ^ word_at(k, end)) * _PRIME
        hashed ^= hashed >> _HALF
    slot = int(np.int64(hashed % _U(_SLOTS)))
    for _ in range(_MOST_LOOKS):
        number = load(places.slots + WORD * slot)
        if number == _NONE:
            return add_word(at, end, column, hashed, slot, places)
        entry = places.table + 4 * WORD * number
        begin = load(entry)
        known = load_word(entry + 3 * WORD) == hashed and load(entry + 2 * WORD) == column
        if known and load(entry + WORD) - begin == end - at and same_bytes(at, end, places.letters + begin, end - at):
            return number
        slot = (slot + 1) % _SLOTS
    return _NONE


@jit
def add_word(at: int, end: int, column: int, hashed: Any, slot: int, places: Places) -> Any:
    """Remember a word in a slot, and give its number; -1 where there is no room."""
    number = load(places.total)
    entry = places.table + 4 * WORD * number
    begin = load(entry)
    if number == MOST_WORDS or end - at > LONGEST or begin > MOST_BYTES:
        return _NONE
    place = places.letters + begin
    for k in range(at, end, WORD):
        store(place, word_at(k, end))
        place += WORD
    store(entry + WORD, begin + end - at)
    store(entry + 2 * WORD, column)
    store(entry + 3 * WORD, hashed)
    store(entry + 4 * WORD, place - places.letters)
    store(places.slots + WORD * slot, number)
    store(places.total, number + 1)
    return number


@jit
def after_blanks(at: int, end: int) -> int:
    """Where the next byte is that is no blank of JSON, at most `end`."""
    inlined()
    while at < end and load_byte(at) <= _BLANK and load_byte(at) in _BLANKS:
        at += 1
    return at


@jit
def text_end(at: int, end: int, sound: bool) -> Any:
    """Where a text of JSON ends, from its first letter on; -1 where it has no end, or letters written as numbers."""
    while True:
        at, is_ascii = find_stop(at, end, _QUOTE, _ESCAPE, _BLANK)
        if at == end or not (sound or is_ascii):
            return _NONE
        if load_byte(at) == _QUOTE:
            return at + 1
        if load_byte(at) != _ESCAPE or at + 1 == end or load_byte(at + 1) not in _ESCAPED:
            return _NONE
        at += 2


@jit
def find_key(at: int, end: int, expected: int, places: Places) -> int:
    """Which key, with the quote after it, is next, looked for from the expected one on; -1 where none is."""
    inlined()
    for step in range(places.n_columns):
        key = expected + step
        if key >= places.n_columns:
            key -= places.n_columns
        place = places.keys + places.stride * key
        if at + load(place) <= end and same_bytes(at, end, place + WORD, load(place)):
            return key
    return _NONE


@jit
def read_value(at: int, end: int, kind: int, sound: bool, powers: int) -> Any:
    """Where a value of JSON ends, or -1 where it is odd; its number, else NaN; and whether it is to be a word."""
    inlined()
    first, after, value = load_byte(at), _NONE, np.nan
    if first == _QUOTE:
        takes = kind & (TEXTS | WORDS)
        after = text_end(at + 1, end, sound)
    elif first <= _NINE:
        takes = kind & (NUMBERS | WORDS)
        after, value = read_number(at, end, True, powers)
        if np.isnan(value):
            after = _NONE
    else:
        takes = kind & (TRUTHS | WORDS)
        word = word_at(at, end) & _FOUR
        if word == _NULL:
            return at + 4, np.nan, False
        if word == _TRUE:
            after, value = at + 4, 1.0
        elif word == _FALSE and is_next(at + 4, end, _E):
            after, value = at + 5, 0.0
    return after if takes or not kind else _NONE, value, takes & (TEXTS | WORDS) != 0


@jit
def scan_object(at: int, end: int, row: int, sound: bool, places: Places) -> Any:
    """Read one object of JSON into a row; give False where it is odd."""
    at = after_blanks(at, end)
    if not is_next(at, end, _OPEN):
        return False
    at = after_blanks(at + 1, end)
    key = _NONE
    while key >= 0 or not is_next(at, end, _CLOSE):
        key = find_key(at + 1, end, key + 1, places) if is_next(at, end, _QUOTE) else _NONE
        # Of a key that comes twice the last value would count.
        if key < 0 or load(places.last + WORD * key) == row:
            return False
        store(places.last + WORD * key, row)
        at = after_blanks(at + 1 + load(places.keys + places.stride * key), end)
        if not is_next(at, end, _COLON):
            return False
        at = after_blanks(at + 1, end)
        if at == end:
            return False
        kind, cell = load(places.kinds + WORD * key), WORD * (places.n_columns * row + key)
        after, value, is_word = read_value(at, end, kind, sound, places.powers)
        if after < 0:
            return False
        if kind & NUMBERS:
            store(places.numbers + cell, value)
        if is_word:
            code = word_number(at, after, key, places)
            if code < 0:
                return False
            store(places.codes + cell, code)
        at = after_blanks(after, end)
        if not is_next(at, end, _COMMA):
            break
        at = after_blanks(at + 1, end)
    return is_next(at, end, _CLOSE) and after_blanks(at + 1, end) == end


@jit
def scan_objects(data: int, begins: Array, ends: Array, sound: bool, places: Places, plain: Array) -> None:
    """Read objects of JSON.

    - data: The address of bytes; record i is from `begins[i]` up to `ends[i]`, which is at least 8.
    - sound: Whether the bytes are UTF-8.
    - plain: Booleans of shape (n,); become False for odd records, which may have some values in their rows.
    """
    for row in range(begins.shape[0]):
        plain[row] = scan_object(data + begins[row], data + ends[row], row, sound, places)


@jit
def scan_row(at: int, end: int, row: int, delimiter: int, sound: bool, places: Places) -> bool:
    """Read a row of CSV; give False where it is odd."""
    # A row of half a letter, or with a mark before it.
    if at == end or load_byte(at) == _MARK or load_byte(at) & _LETTER == _WITHIN or load_byte(end) & _LETTER == _WITHIN:
        return False
    for column in range(places.n_columns):
        if column:
            if not is_next(at, end, delimiter):
                return False
            at += 1
        quoted = is_next(at, end, _QUOTE)
        first = at + 1 if quoted else at
        stop, is_ascii = find_stop(first, end, _QUOTE if quoted else delimiter, _QUOTE, _BLANK)
        if not (sound or is_ascii) or (quoted and not is_next(stop, end, _QUOTE)):
            return False
        at = stop + 1 if quoted else stop
        kind, cell = load(places.kinds + WORD * column), WORD * (places.n_columns * row + column)
        value = number_between_blanks(first, stop, places.powers) if kind & NUMBERS else np.nan
        if not np.isnan(value):
            store(places.numbers + cell, value)
        elif kind and stop > first:
            code = word_number(first, stop, column, places)
            if code < 0:
                return False
            store(places.codes + cell, code)
    return at == end


@jit
def number_between_blanks(at: int, end: int, powers: int) -> float:
    """The number that a field is, with blanks round it; NaN where it is none, or its value is not known here."""
    at = after_blanks(at, end)
    after, value = read_number(at, end, False, powers)
    return value if after > at and after_blanks(after, end) == end else np.nan


@jit
def scan_rows(data: int, begins: Array, ends: Array, delimiter: int, sound: bool, places: Places, plain: Array) -> None:
    """Read rows of CSV; see `scan_objects`."""
    for row in range(begins.shape[0]):
        plain[row] = scan_row(data + begins[row], data + ends[row], row, delimiter, sound, places)
