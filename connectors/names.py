"""Names, those of columns above all: one form of each, the nearest of others, and the values under one, nested too."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any
from unicodedata import normalize

__all__ = ["find", "hint", "nearest", "nfc", "take", "with_normal_names"]


def nfc(name: str) -> str:
    """Return a name as Unicode composes it (NFC): who sees the same name means the same one.

    Examples
    --------
    >>> len("gro\u0308sse"), len(nfc("gro\u0308sse"))
    (7, 6)

    """
    return name if name.isascii() else normalize("NFC", name)


def with_normal_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values under their names as `nfc` has them; of a name that comes twice the last value counts."""
    return {nfc(name): value for name, value in values.items()}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another one; None where none is like it.

    Examples
    --------
    >>> nearest("amuont", ["category", "amount"]), nearest("zzz", ["amount"])
    ('amount', None)

    """
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def hint(name: str, known: Iterable[str]) -> str:
    """Return ``, did you mean ...?`` with the nearest known name; empty where none is near.

    Examples
    --------
    >>> hint("bandwith", ["bandwidth", "structured"])
    ", did you mean 'bandwidth'?"

    """
    near = nearest(name, known)
    return "" if near is None else f", did you mean {near!r}?"


def find(values: Mapping[str, Any], name: str) -> Any:
    """Return a value by its name in NFC, or by the names on the way to it with dots between; None where there is none.

    Examples
    --------
    >>> find({"a": {"b": [1, 2]}, "c.d": 3}, "a.b.1"), find({"a": 1, "c.d": 3}, "c.d"), find({"a": 1}, "a.b")
    (2, 3, None)

    """
    place = _place(values, name)
    return None if place is None else place[0][place[1]]


def take(values: dict[str, Any], name: str) -> Any:
    """Return a value as `find` does, and remove it; an object that held nothing else goes with it.

    In a list, nothing takes its place: the others keep their names.

    Examples
    --------
    >>> values = {"payload": {"y": 1, "a": 2}, "label": {"y": 3}, "list": [4, 5]}
    >>> [take(values, name) for name in ("payload.y", "label.y", "list.0")], values
    ([1, 3, 4], {'payload': {'a': 2}, 'list': [None, 5]})

    """
    place = _place(values, name)
    if place is None:
        return None
    holder, key = place
    value = holder[key]
    if isinstance(holder, list):
        holder[key] = None
        return value
    del holder[key]
    if not holder and holder is not values:
        take(values, name[: -len(nfc(key)) - 1])
    return value


def _place(values: Any, name: str) -> tuple[Any, Any] | None:
    """Return what holds the value of a name, and its key there; None where there is none."""
    if isinstance(values, list):
        first, dot, rest = name.partition(".")
        index = int(first) if first.isascii() and first.isdigit() and len(first) < 10 else len(values)
        if index >= len(values):
            return None
        return _place(values[index], rest) if dot else (values, index)
    if not isinstance(values, dict):
        return None
    if (key := _key(values, name)) is not None:
        return values, key
    for end, letter in enumerate(name):
        if letter == "." and (key := _key(values, name[:end])) is not None:
            found = _place(values[key], name[end + 1 :])
            if found is not None:
                return found
    return None


def _key(values: Mapping[str, Any], name: str) -> str | None:
    """Return the key of a name, which may be composed otherwise there."""
    if name in values:
        return name
    return None if name.isascii() else next((key for key in values if nfc(key) == name), None)
