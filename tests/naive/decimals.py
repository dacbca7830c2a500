"""Plain twins of `streamkernel.compute.decimals`: Python's own numbers, and a pattern of what a number is."""

import math
import re

INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]*)")
JSON = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?![0-9])(?:\.[0-9]++|(?!\.))(?:[eE][+-]?[0-9]++|(?![eE]))")
TEXT = re.compile(rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]+|(?![eE]))")
LONGEST = 19


def high_product(a, b):
    return a * b >> 64


def leading_zeros(word):
    return 64 - word.bit_length()


def first_byte(word):
    return next(place for place, byte in enumerate(word.to_bytes(8, "little")) if byte)


def word_at(data, at):
    return int.from_bytes(data[at : at + 8], "little")


def is_next(data, at, byte):
    return data[at : at + 1] == bytes([byte])


def nearest_float(w, q):
    value = float(f"{w}e{q}")
    return math.nan if math.isinf(value) else value


def of_eight(digits):
    return int(digits)


def read_digits(data, w):
    digits = re.match(rb"[0-9]*", data)[0]
    return len(digits), int(str(w) + digits.decode()) % 2**64


def nearest_of_many(digits, q):
    """NaN where the number of 19 digits before it and the one after it are not the same float."""
    kept = digits.replace(b".", b"").lstrip(b"0")
    w, more = int(kept[:LONGEST] or b"0"), max(0, len(kept) - LONGEST)
    value = nearest_float(w, q + more)
    return value if not more or value == nearest_float(w + 1, q + more) else math.nan


def read_number(data, strict):
    found = (JSON if strict else TEXT).match(data)
    if not found:
        return 0, math.nan
    text = found[0]
    if strict and INTEGER.fullmatch(text):
        return len(text), float(text) if abs(int(text)) < 2**63 and text != b"-0" else math.nan
    digits, _, exponent = text.lower().lstrip(b"+-").partition(b"e")
    if len(exponent.lstrip(b"+-")) > 6:
        return len(text), math.nan
    q = int(exponent or 0) - len(digits.partition(b".")[2])
    value = nearest_of_many(digits, q)
    return len(text), -value if text.startswith(b"-") else value
