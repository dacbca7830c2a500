"""Plain twins of `streamkernel.compute.scanning`: byte by byte, and patterns of what is plain."""

import math
import re

from tests.naive.decimals import read_number

#: What a column takes, as in `streamkernel.compute.scanning`.
NUMBERS, TEXTS, TRUTHS, WORDS = 1, 2, 4, 8
TEXT = re.compile(rb'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"')
BLANKS = b" \t\r\n"
TRUTH = {b"true": 1.0, b"false": 0.0, b"null": math.nan}


def find_stop(data, first, second, lowest):
    stop = next((at for at, byte in enumerate(data) if byte in (first, second) or byte < lowest), len(data))
    return stop, data[:stop].isascii()


def same_bytes(data, other):
    return data.startswith(other)


def after_blanks(data):
    return len(data) - len(data.lstrip(BLANKS))


def text_end(data, sound):
    found = TEXT.match(data)
    return found.end() if found and (sound or found[0].isascii()) else -1


def find_key(data, expected, names):
    order = [*range(expected, len(names)), *range(min(expected, len(names)))]
    return next((key for key in order if data.startswith(names[key] + b'"')), -1)


def read_value(data, kind, sound):
    """Where it ends, its number, and whether it is a word."""
    if data[:4] == b"null":
        return 4, math.nan, False
    truth = next((word for word in TRUTH if data.startswith(word)), b"")
    if data[:1] == b'"':
        takes, value, after = kind & (TEXTS | WORDS), math.nan, text_end(data[1:], sound)
        after += after > 0
    elif truth:
        takes, value, after = kind & (TRUTHS | WORDS), TRUTH[truth], len(truth)
    else:
        after, value = read_number(data, True)
        takes, after = kind & (NUMBERS | WORDS), -1 if math.isnan(value) else after
    return (after if takes or not kind else -1), value, bool(takes & (TEXTS | WORDS))


def number_between_blanks(data):
    data = data.strip(BLANKS)
    after, value = read_number(data, False)
    return value if data and after == len(data) else math.nan


def word_number(word, column, words):
    """The place of a word of a column among all, to which it is added if it is new."""
    return words.index((word, column)) if (word, column) in words else add_word(word, column, words)


def add_word(word, column, words):
    words.append((word, column))
    return len(words) - 1


def scan_object(data, names, kinds, sound):
    """By column, the number of a value and its word, None for no word; None for an odd object."""
    row, rest = {}, data.strip(BLANKS)
    if not rest.startswith(b"{") or not rest.endswith(b"}"):
        return None
    rest, more = rest[1:-1].strip(BLANKS), False
    while rest or more:
        key = find_key(rest[1:], 0, names) if rest.startswith(b'"') else -1
        if key < 0 or key in row:
            return None
        colon, rest = rest[len(names[key]) + 2 :].lstrip(BLANKS)[:1], rest[len(names[key]) + 2 :].lstrip(BLANKS)[1:]
        rest = rest.lstrip(BLANKS)
        after, value, is_word = read_value(rest, kinds[key], sound) if rest and colon == b":" else (-1, 0.0, False)
        if after < 0:
            return None
        row[key] = value if kinds[key] & NUMBERS else math.nan, rest[:after] if is_word else None
        rest = rest[after:].lstrip(BLANKS)
        more = rest.startswith(b",")
        if rest and not more:
            return None
        rest = rest[1:].lstrip(BLANKS)
    return row


def scan_objects(records, names, kinds, sound):
    return [scan_object(data, names, kinds, sound) for data in records]


def scan_row(data, delimiter, kinds, sound):
    """By column, the number of a field and its word, None for no word; None for an odd row."""
    between = bytes([delimiter])
    field = re.compile(rb'"([^"\x00-\x1f]*)"|((?!")[^"\x00-\x1f' + re.escape(between) + rb"]*)")
    row, at = {}, 0
    if not data or data[0] == 0xEF or data[0] >> 6 == 2:
        return None
    for column, kind in enumerate(kinds):
        found = field.match(data, at + (column > 0)) if not column or data[at : at + 1] == between else None
        if not found or not (sound or found[0].isascii()):
            return None
        text, at = found[1] if found[2] is None else found[2], found.end()
        value = number_between_blanks(text) if kind & NUMBERS else math.nan
        row[column] = value, text if kind and text and math.isnan(value) else None
    return row if at == len(data) else None


def scan_rows(records, delimiter, kinds, sound):
    return [scan_row(data, delimiter, kinds, sound) for data in records]
