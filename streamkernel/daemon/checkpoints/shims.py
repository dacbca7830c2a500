"""The calls that a payload may make: code of ours checks the arguments of each.

The reader never hands out these functions. It puts a `Shim` there instead, which only it can call.
"""

import collections
import datetime
import functools
import operator
import random
import statistics
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from river import base
from river._river_rust.vectordict import VectorDict

from streamkernel import state
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints import allowed, arrays
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
            reader.spend(len(value) if isinstance(value, bytes | dict | list | tuple) else 0)
        check(fit, target.__qualname__)
        return target(*given)

    return build


def _checked(
    what: str,
    fit: Callable[[Any], bool],
    make: Callable[[Any, Given], Any] = lambda target, given: target(*given),
) -> Build:
    """Return a shim that calls its target where the arguments fit."""

    def build(_: ReadContext, target: Any, given: Given) -> Any:
        check(fit(given), what)
        return make(target, given)

    return build


def _state(what: str, fit: Callable[[Any], bool]) -> Build:
    """Return a shim that sets the state of an instance where it fits."""
    return _checked(what, fit, lambda target, state: target.__setstate__(state))


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


def _is_deque(given: Given) -> bool:
    # What it holds is appended: a copy of it is not needed.
    typed = len(given) <= 2 and all(type(part) in kinds for part, kinds in zip(given, _DEQUE, strict=False))
    return typed and (not given or not given[0])


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


def _set_random(_: ReadContext, target: random.Random, state: Any) -> None:
    check(type(state) is tuple and len(state) == 3 and state[0] == 3 and type(state[1]) is tuple, "a generator")
    target.setstate(state)


#: What a payload may call, by the function or class itself.
SHIMS: dict[Any, Build] = {
    getattr: _bound_method,
    iter: _typed(list),
    range: _typed(int, int, int),
    collections.Counter: _typed(dict, least=0),
    collections.OrderedDict: _typed(),
    collections.defaultdict: _checked(
        "a default factory", lambda given: len(given) == 1 and (given[0] is None or callable(given[0]))
    ),
    collections.deque: _checked("a deque", _is_deque),
    datetime.date: _typed(bytes),
    datetime.datetime: _typed(bytes, datetime.timezone, least=1),
    datetime.timedelta: _typed(int, int, int),
    datetime.timezone: _typed(datetime.timedelta),
    functools.partial: _partial,
    operator.itemgetter: _typed((str, int)),
    random.Random: _typed(),
    statistics.NormalDist: _typed(),
    arrays.array: _typed(str, tuple, str, (bytes, list)),
    arrays.generator: _typed(bytes, int, int, float),
    arrays.number: _typed(str, bytes),
    VectorDict: _vector_dict,
    state.rebuild: _rebuild,
}
SHIMMED = {allowed.name_of(function): function for function in SHIMS}

STATES: dict[type, Build] = {
    functools.partial: _set_partial,
    random.Random: _set_random,
    statistics.NormalDist: _state("a distribution", lambda state: type(state) is tuple and _are_numbers(state)),
    type(iter([])): _state("an iterator", lambda state: type(state) is int),
}


def maker_of(cls: type) -> Build | None:
    """Return the shim that makes instances of a class from arguments, None if it takes none."""
    if allowed.is_compiled(cls) or (allowed.in_river(cls.__module__) and issubclass(cls, collections.deque)):
        return _numbers
    if allowed.in_river(cls.__module__) and issubclass(cls, tuple):
        return _named_tuple
    return SHIMS.get(cls)
