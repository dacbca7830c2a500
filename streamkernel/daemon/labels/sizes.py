"""The sizes of records and labels that wait, as the bound in bytes counts them.

The sizes rest on nothing but what came, not on what a process makes of it: whether something has to make room must not
depend on how a stream was cut into chunks, nor on a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamkernel.connectors.ports import Label

__all__ = ["size_of_key", "size_of_label", "size_of_record"]

# What holds a value together: its place in a dict, in a queue and in the bytes of a checkpoint.
_FRAME = 64
_FIELD = 16


def size_of_record(key: str, x: Mapping[str, Any], lags: Sequence[Label] = ()) -> int:
    """Return the size of a record that waits for its label with the targets known before it, in bytes.

    Examples
    --------
    >>> size_of_record("17", {"a": 0.5, "color": "red"})
    107

    """
    texts = sum([len(value) if type(value) is str else _beyond_a_word(value) for value in x.values()])
    before = sum([_FIELD + (len(y) if isinstance(y, str) else _beyond_a_word(y)) for y in lags])
    return _FRAME + len(key) + _FIELD * len(x) + sum(map(len, x)) + texts + before


def size_of_label(key: str, y: Label) -> int:
    """Return the size of a label that waits for its record, in bytes."""
    return _FRAME + len(key) + (len(y) if isinstance(y, str) else _beyond_a_word(y))


def size_of_key(key: str) -> int:
    """Return the size of a key that is remembered, in bytes."""
    return _FRAME + len(key)


def _beyond_a_word(value: Any) -> int:
    return value.bit_length() // 8 if type(value) is int else 0
