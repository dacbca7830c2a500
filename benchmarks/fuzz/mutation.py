"""Odd bytes and odd values, from what is sound."""

import random
from typing import Any

#: Where parsers and arithmetic have their edges.
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63), 2**64, 2**200, 10**300),
    *(0.0, -0.0, 5e-324, 1e-300, 1e42, -1e42, 1.3e154, 1e200, 1.7e308, -1.7e308),
)
_TEXTS = ("", " ", "\0", "\x1b[31m", "é", "\ud800", "a" * 300, "NaN", "1e999", "../x", "${X}", "{}", "=", ",", '"')
_TOKENS = (
    b"\0",
    b"\n",
    b"\r\n",
    b'"',
    b",",
    b"{",
    b"}",
    b"[",
    b":",
    b"\xff",
    b"\xef\xbb\xbf",
    b"NaN",
    b"1e999",
    b"null",
)
_MOST_COPIED = 4096


def odd(draw: random.Random, depth: int = 3) -> Any:
    """A JSON value of any kind."""
    kind = draw.randrange(8 if depth else 6)
    if kind < 2:
        return draw.choice(NUMBERS)
    if kind < 4:
        return draw.choice(_TEXTS)
    if kind < 6:
        return draw.choice((None, True, False, [], {}))
    parts = [odd(draw, depth - 1) for _ in range(draw.randrange(4))]
    return parts if kind == 6 else {str(draw.choice(_TEXTS)): part for part in parts}


def altered(draw: random.Random, value: Any) -> Any:
    """The same value but for one place in it, which is gone, doubled or another value."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        rest = {name: item for name, item in value.items() if name != key}
        choice = draw.random()
        if choice < 0.1:
            return rest
        if choice < 0.15:
            return {**value, str(draw.choice(_TEXTS)): value[key]}
        return {**value, key: altered(draw, value[key])}
    if isinstance(value, list) and value and draw.random() < 0.9:
        place = draw.randrange(len(value))
        choice = draw.random()
        if choice < 0.1:
            return value[:place] + value[place + 1 :]
        if choice < 0.2:
            return [*value[:place], value[place], *value[place:]]
        return [*value[:place], altered(draw, value[place]), *value[place + 1 :]]
    return odd(draw)


def mutated(draw: random.Random, data: bytes) -> bytes:
    """The same bytes but for some places: changed, cut out, doubled, or with a token put in."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at = draw.randrange(len(found) + 1)
        length = min(draw.choice((1, 1, 2, 8, 64, _MOST_COPIED)), len(found) - at)
        choice = draw.randrange(6)
        if choice == 0 and at < len(found):
            found[at] ^= 1 << draw.randrange(8)
        elif choice == 1:
            del found[at : at + length]
        elif choice == 2:
            found[at:at] = found[at : at + length] * draw.choice((1, 2, 16))
        elif choice == 3:
            found[at:at] = draw.choice(_TOKENS)
        elif choice == 4:
            found[at : at + length] = draw.randbytes(length)
        else:
            found[at : at + 8] = draw.choice((b"\xff" * 8, b"\0" * 8, (2**31 - 1).to_bytes(8, "little")))
    return bytes(found)
