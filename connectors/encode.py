"""Encoding lines of output as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import orjson

from streamkernel.connectors.pass_through import MessageLine, SourceMessage

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
_LINE_OPTIONS = _OPTIONS | orjson.OPT_APPEND_NEWLINE


def to_json(value: Any) -> bytes:
    """Encode a value as JSON on one line; the same value always gives the same bytes.

    NumPy scalars and arrays count as what they hold, named tuples as objects, NaN and the infinities as null. A value
    is a plain one, or mappings and sequences of such; TypeError for an object of any other kind.

    Examples
    --------
    >>> to_json({"prediction": np.float64(0.5), "probabilities": {True: 0.5, 2: math.nan}})
    b'{"prediction":0.5,"probabilities":{"true":0.5,"2":null}}'
    >>> to_json(2**64)
    b'18446744073709551616'

    """
    try:
        # Lines may wait by the hundred thousand. What orjson (3.13) gives holds 4 KB of memory each, a copy does not.
        return bytes(memoryview(orjson.dumps(value, default=_encode_rest, option=_OPTIONS)))
    except TypeError:
        # Integers of more than 64 bits, keys that are NumPy scalars, strings with lone surrogates.
        text = json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8", "backslashreplace")


@dataclass(eq=False)
class ColumnLines(Sequence[Mapping[str, Any]]):
    """Lines that are kept in columns: each is a dict only when it is asked for.

    Parameters
    ----------
    n
        How many lines there are.
    columns
        By its name, each column: a list of n values, an array of n numbers, a dict of columns for an object in each
        line, or any other value, which all lines have.
    messages
        The source message of each line, which is a `MessageLine` then; None: there is none.

    Examples
    --------
    >>> lines = ColumnLines(2, {"prediction": [True, None], "probabilities": {"a": np.array([0.5, 1.0])}, "model": "m"})
    >>> lines[1]
    {'prediction': None, 'probabilities': {'a': 1.0}, 'model': 'm'}
    >>> to_json_lines(lines[:1]) == to_json_lines(lines).splitlines(keepends=True)[0]
    True

    """

    n: int
    columns: dict[str, Any]
    messages: Sequence[SourceMessage] | None = None

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, place: Any) -> Any:
        return self._lines[place]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._lines)

    @cached_property
    def _lines(self) -> list[Any]:
        lines = _values(self.columns, self.n)
        return lines if self.messages is None else list(map(MessageLine, lines, self.messages))


def _values(column: Any, n: int) -> list[Any]:
    """Return the value of a column in each of n lines."""
    if isinstance(column, dict):
        rows = zip(*(_values(one, n) for one in column.values()), strict=True) if column else [()] * n
        return [dict(zip(column, row, strict=True)) for row in rows]
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    return column if isinstance(column, list) else [column] * n


def _texts(column: Any, n: int) -> Iterator[bytes | list[bytes]]:
    """Yield the pieces of a column as JSON: those that are different in each of n lines, and those of all of them."""
    if isinstance(column, dict):
        yield b"{"
        for place, (name, one) in enumerate(column.items()):
            yield (b"," if place else b"") + orjson.dumps({name: None}, _encode_rest, _OPTIONS)[1:-5]
            yield from _texts(one, n)
        yield b"}"
    elif isinstance(column, list | np.ndarray):
        texts = orjson.dumps(column, _encode_rest, _OPTIONS)[1:-1].split(b",")
        # Text and objects may hold commas: then each value is encoded alone.
        yield texts if len(texts) == n else [orjson.dumps(one, _encode_rest, _OPTIONS) for one in column]
    else:
        yield orjson.dumps(column, _encode_rest, _OPTIONS)


def to_json_lines(values: Sequence[Any]) -> bytearray:
    """Encode each value as `to_json` does, on a line of its own."""
    lines = bytearray()
    try:
        if not isinstance(values, ColumnLines):
            # Each is freed before the next is made: hundreds at once grow and trim the heap, at twice the cost.
            for value in values:
                lines += orjson.dumps(value, _encode_rest, _LINE_OPTIONS)
            return lines
        pieces: list[list[bytes]] = []
        same = b""
        for text in _texts(values.columns, values.n):
            if isinstance(text, bytes):
                same += text
            else:
                pieces += [[same] * values.n, text]
                same = b""
        pieces.append([same + b"\n"] * values.n)
        together = [b""] * (values.n * len(pieces))
        for place, piece in enumerate(pieces):
            together[place :: len(pieces)] = piece
        return lines.join(together)
    except TypeError:
        return bytearray().join([to_json(value) + b"\n" for value in values])


def _encode_rest(value: Any) -> Any:
    """Turn what orjson does not know into what it does; raises TypeError for an object of any other kind."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"a {type(value).__name__} has no place in a line of output")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {_key(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return _encode_rest(value)


def _key(name: Any) -> str:
    return name if isinstance(name, str) else json.dumps(_plain(name))
