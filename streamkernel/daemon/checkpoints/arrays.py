"""Arrays, numbers and generators of numpy in a payload: written as plain values, and made from them with care.

numpy's own pickles name functions in its private modules, and these functions believe what they are given.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import RandomState

__all__ = ["array", "generator", "number", "reduced"]

_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[SU][1-9]\d{0,3}|O)")
_TABLE = 624


def reduced(found: Any) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """Return what makes an array, number or generator again: a function of this module and its plain arguments.

    Anything else gives None.

    Examples
    --------
    >>> make, plain = reduced(np.array([1.5, 2.5]))
    >>> plain
    ('<f8', (2,), 'C', b'\\x00\\x00\\x00\\x00\\x00\\x00\\xf8?\\x00\\x00\\x00\\x00\\x00\\x00\\x04@')
    >>> make(*plain)
    array([1.5, 2.5])

    """
    if type(found) is np.ndarray:
        order: Any = "F" if found.flags.f_contiguous and not found.flags.c_contiguous else "C"
        data = found.ravel(order).tolist() if _dtype(found.dtype.str).hasobject else found.tobytes(order)
        return array, (found.dtype.str, found.shape, order, data)
    if isinstance(found, np.generic):
        return number, (_dtype(found.dtype.str).str, found.tobytes())
    if type(found) is RandomState:
        state: Any = found.get_state()
        _require(isinstance(state, tuple), "a generator must be a Mersenne twister")
        key: Any
        _, key, position, has_gauss, gauss = state
        return generator, (key.tobytes(), position, has_gauss, gauss)
    return None


def array(code: str, shape: tuple[int, ...], order: Any, data: bytes | list[Any]) -> np.ndarray[Any, Any]:
    """Return an array with the bytes of its entries, or a list of them if they are objects."""
    dtype = _dtype(code)
    # An empty array may have any shape at all, and numpy loops over some of them.
    _require(all(type(n) is int and n >= 0 for n in shape) and sum(shape) < 1 << 40, "an array has no such shape")
    entries = math.prod(shape)
    _require(type(data) is (list if dtype.hasobject else bytes) and order in ("C", "F"), "an array lacks its entries")
    _require(len(data) == entries * (1 if dtype.hasobject else dtype.itemsize), "an array has other entries")
    if not dtype.hasobject:
        return np.ndarray(shape, dtype, bytearray(data), order=order)
    made = np.empty(entries, object)
    for place, entry in enumerate(data):
        made[place] = entry
    return made.reshape(shape, order=order)


def number(code: str, data: bytes) -> Any:
    """Return a number or text of numpy with these bytes."""
    dtype = _dtype(code)
    _require(not dtype.hasobject and len(data) == dtype.itemsize, "a number has other bytes")
    return np.frombuffer(data, dtype)[0]


def generator(key: bytes, position: int, has_gauss: int, gauss: float) -> RandomState:
    """Return a Mersenne twister with this table."""
    # numpy believes the position and reads there.
    _require(len(key) == 4 * _TABLE and 0 <= position <= _TABLE, "a generator has no such table")
    made = RandomState(0)
    made.set_state(("MT19937", np.frombuffer(key, np.uint32), position, has_gauss, gauss))
    return made


def _dtype(code: str) -> np.dtype[Any]:
    _require(_DTYPE.fullmatch(code) is not None and np.dtype(code).isnative, f"no array has the type {code:.20}")
    return np.dtype(code)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)
