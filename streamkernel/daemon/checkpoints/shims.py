"""The calls that a payload may make: code of ours checks the arguments of each.

The reader never hands out these functions. It puts a `Shim` there instead, which only it can call.
"""

import collections
import datetime
import functools
import math
import operator
import random
import re
import statistics
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy._core import multiarray, numeric
from numpy.random import MT19937, RandomState, SeedSequence, _pickle, bit_generator
from river import base
from river._river_rust.vectordict import VectorDict

from streamkernel import state
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints import allowed
from streamkernel.daemon.checkpoints.sizes import Sizes, refuse_larger

#: Far above what any estimator needs (the length of a rolling window), far below what hurts.
MOST = 1 << 20

Given = tuple[Any, ...]


class ReadContext(Protocol):
    """The part of the reader that shims use."""

    packages: Sequence[str]
    sizes: Sizes

    def spend(self, amount: int) -> None:
        """Account for something copied or allocated."""


Build = Callable[[ReadContext, Any, Given], Any]


class Shim:
    """Takes the place of a function that only the reader may call."""

    def __init__(self, function: Any) -> None:
        self.function = function


def refuse(what: str) -> NoReturn:
    raise CheckpointError(f"the payload {what}, which no checkpoint may hold")


def check(condition: bool, what: str) -> None:
    if not condition:
        refuse(f"gives {what} a value of the wrong kind")


def kind_of(target: Any) -> str:
    # Never its repr: that would run code on what the payload made.
    named = target.function if isinstance(target, Shim) else target
    named = named if isinstance(named, type | types.FunctionType | types.BuiltinFunctionType) else type(named)
    return f"{named.__module__}.{named.__qualname__}"


def _typed(*kinds: type | tuple[type, ...], least: int | None = None) -> Build:
    """Return a shim that calls its target with arguments of exactly these types, the first `least` of them at least."""

    def build(reader: ReadContext, target: Any, given: Given) -> Any:
        fit = (len(kinds) if least is None else least) <= len(given) <= len(kinds)
        for value, kind in zip(given, kinds, strict=False):
            fit = fit and type(value) in (kind if isinstance(kind, tuple) else (kind,))
            reader.spend(len(value) if isinstance(value, dict | list | tuple) else 0)
        check(fit, target.__qualname__)
        return target(*given)

    return build


def _numbers(reader: ReadContext, target: Any, given: Given) -> Any:
    # The compiled parts of River abort the process, rather than raise, on a window too long for the memory.
    check(_are_numbers(given), target.__qualname__)
    if target.__qualname__ == "AdaptiveWindowing" and len(given) > _BUCKETS:
        reader.spend(8 * int(given[_BUCKETS]))  # which it makes room for at once
    return target(*given)


# Which argument of an ADWIN window says how many buckets it has.
_BUCKETS = 2


def _are_numbers(values: Any) -> bool:
    return all(type(v) is float or (type(v) in (int, bool) and abs(v) <= MOST) for v in values)


def _named_tuple(_: ReadContext, target: Any, given: Given) -> Any:
    return tuple.__new__(target, given)


def _factory(_: ReadContext, target: Any, given: Given) -> Any:
    check(len(given) == 1 and (given[0] is None or callable(given[0])), "a default factory")
    return target(given[0])


def _deque(_: ReadContext, target: Any, given: Given) -> Any:
    # What it holds is appended: a copy of it is not needed.
    check(len(given) <= 2 and all(type(part) in kinds for part, kinds in zip(given, _DEQUE, strict=False)), "a deque")
    check(not given or not given[0], "a deque")
    return target(*given)


_DEQUE = ((tuple,), (int, types.NoneType))


def _vector_dict(reader: ReadContext, target: Any, given: Given) -> Any:
    data, factory, mask, copied = given
    check(type(data) is dict and (factory is None or callable(factory)) and mask is None, "a VectorDict")
    reader.spend(len(data))
    return target(data, factory, None, copied is True)


def _bound_method(reader: ReadContext, _: Any, given: Given) -> Any:
    check(len(given) == 2 and type(given[1]) is str, "getattr")
    owner, name = given
    if owner is str and name == "lower":
        return str.lower
    method = allowed.find_method(owner, name, reader.packages)
    if method is None:
        refuse(f"fetches the attribute {name} of {kind_of(owner)}")
    return types.MethodType(method, owner)


def _partial(reader: ReadContext, target: Any, given: Given) -> Any:
    check(len(given) == 1 and allowed.is_partial_target(given[0], reader.packages), "a partial")
    return target(given[0])


def _set_partial(_: ReadContext, target: functools.partial[Any], state: Any) -> None:
    check(type(state) is tuple and len(state) == 4, "a partial")
    func, given, keywords, attributes = state
    check(func is target.func and type(given) is tuple and type(keywords) is dict and not attributes, "a partial")
    if func is np.ones or func is np.array:
        numbers = given[0] if given and type(given[0]) is list else given
        check(len(given) == 1 and _are_numbers(numbers) and not keywords, "a partial")
    target.__setstate__((func, given, keywords, None))  # type: ignore[attr-defined]


def _rebuild(reader: ReadContext, target: Any, given: Given) -> Any:
    cls, arguments = given
    ours = isinstance(cls, type) and allowed.is_ours(cls)
    check(ours and type(arguments) is dict and all(type(name) is str for name in arguments), "an estimator")
    check(all(map(_is_argument, arguments.values())), "an estimator")
    refuse_larger(cls, arguments, reader.sizes)
    made = target(cls, arguments)
    # What the arguments make it allocate must be in the state that follows.
    if hasattr(cls, "__getstate__") and hasattr(cls, "__setstate__"):
        reader.spend(sum(part.nbytes for part in made.__getstate__().values() if isinstance(part, np.ndarray)))
    return made


def _is_argument(value: Any) -> bool:
    # A constructor shows what it does not accept: the text of a list of lists of lists may be endless.
    if isinstance(value, list | tuple):
        return all(_is_argument(item) and not isinstance(item, list | tuple) for item in value)
    return value is None or type(value) in (bool, int, float, str) or isinstance(value, base.Base)


_DTYPE = re.compile(r"b1|[iu][1248]|f[248]|c8|c16|O8|[SU][1-9]\d{0,3}")


def _dtype(_: ReadContext, target: Any, given: Given) -> Any:
    check(len(given) == 3 and type(given[0]) is str and _DTYPE.fullmatch(given[0]) is not None, "a numpy type")
    return target(given[0])


def _scalar(_: ReadContext, target: Any, given: Given) -> Any:
    dtype, data = given
    check(isinstance(dtype, np.dtype) and not dtype.hasobject and type(data) is bytes, "a numpy scalar")
    check(len(data) == dtype.itemsize, "a numpy scalar")
    return target(dtype, data)


def _is_shape(shape: Any) -> bool:
    # An empty array may have any shape at all, and numpy loops over some of them.
    return type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape) and sum(shape) < 1 << 40


def _array_from_buffer(_: ReadContext, target: Any, given: Given) -> Any:
    check(len(given) in (4, 5), "an array")
    buffer, dtype, shape, order = given[:4]
    check(type(buffer) in (bytes, bytearray) and isinstance(dtype, np.dtype) and not dtype.hasobject, "an array")
    check(_is_shape(shape) and len(buffer) == math.prod(shape) * dtype.itemsize and type(order) is str, "an array")
    return target(buffer, dtype, shape, *given[3:])


def _empty_array(_: ReadContext, __: Any, given: Given) -> Any:
    check(given == (np.ndarray, (0,), b"b"), "an array")
    return np.empty(0)


def _set_array(reader: ReadContext, target: np.ndarray[Any, Any], state: Any) -> None:
    check(type(state) is tuple and len(state) == 5 and target.size == 0 and target.flags.owndata, "an array")
    _, shape, dtype, _, data = state
    check(_is_shape(shape) and isinstance(dtype, np.dtype), "an array")
    entries = math.prod(shape)
    if dtype.hasobject:
        check(type(data) is list and len(data) == entries, "an array")
    else:
        check(type(data) is bytes and len(data) == entries * dtype.itemsize, "an array")
    reader.spend(len(data))
    target.__setstate__(state)


def _bit_generator(_: ReadContext, __: Any, given: Given) -> Any:
    check(len(given) == 1 and given[0] is MT19937, "a bit generator")
    return MT19937()


def _seed_sequence(_: ReadContext, __: Any, given: Given) -> Any:
    check(len(given) == 3 and given[0] is SeedSequence and given[2] is None, "a seed sequence")
    return SeedSequence(0)


def _is_twister(state: Any) -> bool:
    # numpy believes the position and reads there.
    key, position = state["state"]["key"], state["state"]["pos"]
    sound = isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (624,)
    return sound and type(position) is int and 0 <= position <= 624 and state["bit_generator"] == "MT19937"


def _set_bit_generator(_: ReadContext, target: Any, state: Any) -> None:
    check(_is_twister(state[0]) and isinstance(state[1], SeedSequence | None), "a bit generator")
    target.__setstate__(state)


def _set_random_state(_: ReadContext, target: Any, state: Any) -> None:
    check(_is_twister(state) and type(state["has_gauss"]) is int and type(state["gauss"]) is float, "a generator")
    target.__setstate__(state)


def _set_seed_sequence(_: ReadContext, target: Any, state: Any) -> None:
    _, spawned, pool, size, key = state
    sound = isinstance(pool, np.ndarray) and pool.dtype == np.uint32 and pool.shape == (size,)
    check(sound and type(spawned) is int and type(size) is int and type(key) is tuple, "a seed sequence")
    target.__setstate__(state)


def _set_random(_: ReadContext, target: random.Random, state: Any) -> None:
    check(type(state) is tuple and len(state) == 3 and state[0] == 3 and type(state[1]) is tuple, "a generator")
    target.setstate(state)


def _set_normal(_: ReadContext, target: Any, state: Any) -> None:
    check(type(state) is tuple and _are_numbers(state), "a distribution")
    target.__setstate__(state)


def _set_position(_: ReadContext, target: Any, state: Any) -> None:
    check(type(state) is int, "an iterator")
    target.__setstate__(state)


#: What a payload may call, by the function or class itself.
SHIMS: dict[Any, Build] = {
    getattr: _bound_method,
    iter: _typed(list),
    range: _typed(int, int, int),
    collections.Counter: _typed(dict, least=0),
    collections.OrderedDict: _typed(),
    collections.defaultdict: _factory,
    collections.deque: _deque,
    datetime.date: _typed(bytes),
    datetime.datetime: _typed(bytes, datetime.timezone, least=1),
    datetime.timedelta: _typed(int, int, int),
    datetime.timezone: _typed(datetime.timedelta),
    functools.partial: _partial,
    operator.itemgetter: _typed((str, int)),
    random.Random: _typed(),
    statistics.NormalDist: _typed(),
    np.dtype: _dtype,
    multiarray._reconstruct: _empty_array,
    multiarray.scalar: _scalar,
    numeric._frombuffer: _array_from_buffer,  # type: ignore[attr-defined]
    _pickle.__bit_generator_ctor: _bit_generator,
    _pickle.__randomstate_ctor: _typed(MT19937),
    bit_generator.__pyx_unpickle_SeedSequence: _seed_sequence,  # type: ignore[attr-defined]
    VectorDict: _vector_dict,
    state.rebuild: _rebuild,
}
SHIMMED = {allowed.name_of(function): function for function in SHIMS}

STATES: dict[type, Callable[[ReadContext, Any, Any], None]] = {
    MT19937: _set_bit_generator,
    RandomState: _set_random_state,
    SeedSequence: _set_seed_sequence,
    functools.partial: _set_partial,
    np.ndarray: _set_array,
    random.Random: _set_random,
    statistics.NormalDist: _set_normal,
    type(iter([])): _set_position,
}


def maker_of(cls: type) -> Build | None:
    """Return the shim that makes instances of a class from arguments, None if it takes none."""
    if allowed.is_compiled(cls) or (allowed.in_river(cls.__module__) and issubclass(cls, collections.deque)):
        return _numbers
    if allowed.in_river(cls.__module__) and issubclass(cls, tuple):
        return _named_tuple
    return SHIMS.get(cls)
