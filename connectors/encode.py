"""Encoding lines of output as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

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


def to_json_lines(values: Sequence[Any]) -> bytearray:
    """Encode each value as `to_json` does, on a line of its own."""
    lines = bytearray()
    try:
        # Each is freed before the next is made: hundreds of them at once grow and trim the heap, at twice the cost.
        for value in values:
            lines += orjson.dumps(value, _encode_rest, _LINE_OPTIONS)
    except TypeError:
        lines = bytearray().join([to_json(value) + b"\n" for value in values])
    return lines


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
