"""A pickle reader that builds listed objects and refuses everything else.

A pickle is a program: whoever can write a checkpoint could run anything with the standard reader. This one looks every
name up in the exact lists of `streamkernel.daemon.allowed`, and narrows what may be done with what it finds:

- a listed class gives an empty instance (no `__init__`, no arguments), then its attributes are set;
- what must be called with arguments (`getattr`, `partial`, numpy's constructors, ...) goes through a *shim*: code of
  ours that checks the arguments. The functions behind shims are never handed out;
- attributes are set on instances made here only, not on a class, function or module, and never a `__special__` one;
- opcodes that protocol 5 does not write for such objects (GLOBAL, INST, EXT1, PERSID, ...) are refused;
- what is copied or allocated is bounded by the length of the payload.

It is the standard library's pure Python reader with some opcodes replaced.
"""

import collections
import datetime
import functools
import importlib
import io
import math
import pickle
import random
import re
import statistics
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.random import MT19937, RandomState, SeedSequence
from river import base

from streamkernel.daemon import allowed
from streamkernel.daemon.checkpoint import CheckpointError

#: Far above what any estimator needs (the length of a rolling window), far below what hurts.
_MOST = 1 << 20

_Given = tuple[Any, ...]


def loads(data: bytes, packages: Sequence[str] = ()) -> Any:
    """Restore an object from a pickle, running nothing but what is listed.

    Parameters
    ----------
    data
        What `streamkernel.daemon.payload.dump_model` pickled.
    packages
        Names of packages whose classes and functions are trusted as well; none by default.

    Raises
    ------
    CheckpointError
        The bytes are no pickle, or name or do something that is not allowed.

    Examples
    --------
    >>> import os, pickle
    >>> loads(pickle.dumps({"a": [1, 2.5]}, 5))
    {'a': [1, 2.5]}
    >>> loads(pickle.dumps(os.system, 5))
    Traceback (most recent call last):
        ...
    streamkernel.daemon.checkpoint.CheckpointError: the payload names posix.system, which no checkpoint may hold

    """
    try:
        return _Reader(data, packages).restore()
    except (CheckpointError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the compiled parts of River raise a PanicException, which is no Exception
        raise CheckpointError(f"the payload cannot be restored: {type(error).__name__}: {error!s:.200}") from error


def permits(module: str, name: str, packages: Sequence[str] = ()) -> bool:
    """Whether a payload may contain this name."""
    key = (module, name)
    return key in _SHIMS or allowed.is_listed(key) or (allowed.is_trusted(module, packages) and "." not in name)


class _Shim:
    """Stands where a function would; only the opcode that calls functions knows what to do with it."""

    def __init__(self, function: Any, build: "_Build") -> None:
        self.function = function
        self.build = build


class _Reader(pickle._Unpickler):
    stack: list[Any]
    append: Callable[[Any], None]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, data: bytes, packages: Sequence[str]) -> None:
        super().__init__(io.BytesIO(data))
        self.packages = packages
        self.budget = 2 * len(data) + _MOST
        self.patience = 16 * len(data) + _MOST
        self.plain: set[type] = set()
        self.trusted: set[type] = set()
        self.built: dict[type, _Build] = {}
        self.flat: list[Any] = []

    def restore(self) -> Any:
        """The first pickle in the payload; those after it hold the attributes of the flat instances, round by round."""
        root = self.load()
        while self.flat:
            made, self.flat = self.flat, []
            states = self.load()
            _check(type(states) is list and len(states) == len(made), "a tree")
            for one, state in zip(made, states, strict=True):
                _set_attributes(one, state)
        return root

    def spend(self, amount: int) -> None:
        """Account for something copied: a payload that refers to one thing many times must not multiply it."""
        self.budget -= amount
        if self.budget < 0:
            _refuse("asks for more memory than its length accounts for")

    def key(self, key: Any) -> Any:
        """Let a key pass if hashing it ends soon: tuples in tuples, each twice in the next, would take for ever."""
        pending = [key] if isinstance(key, tuple | frozenset) else []
        while pending:
            items = pending.pop()
            self.patience -= len(items)
            if self.patience < 0:
                _refuse("has a dictionary key that takes too long")
            pending.extend(item for item in items if isinstance(item, tuple | frozenset))
        return key

    def find_class(self, module: str, name: str) -> Any:
        key = (module, name)
        build = _SHIMS.get(key)
        if build is None and not allowed.is_listed(key):
            return self._find_trusted(module, name)
        try:
            found = allowed.resolve(module, name)
        except LookupError as error:
            raise CheckpointError(f"the payload needs a name that is missing: {error}") from error
        if build is not None and not isinstance(found, type):
            return _Shim(found, build)
        if build is not None:
            self.built[found] = build
        elif allowed.is_plain(key):
            self.plain.add(found)
        return found

    def _find_trusted(self, module: str, name: str) -> Any:
        if not allowed.is_trusted(module, self.packages) or "." in name:
            _refuse(f"names {module}.{name}")
        found = getattr(importlib.import_module(module), name, None)
        if not isinstance(found, type | types.FunctionType | types.BuiltinFunctionType) or found.__module__ != module:
            _refuse(f"names {module}.{name}, no class or function of that module,")
        if isinstance(found, type):
            self.trusted.add(found)
        return found

    def load_reduce(self) -> None:
        given = self.stack.pop()
        self.stack[-1] = self._construct(self.stack[-1], given, called=True)

    def load_newobj(self) -> None:
        given = self.stack.pop()
        self.stack[-1] = self._construct(self.stack[-1], given, called=False)

    def load_newobj_ex(self) -> None:
        keywords, given, cls = self.stack.pop(), self.stack.pop(), self.stack.pop()
        _check(isinstance(cls, type) and cls in self.trusted, "a class")
        self.append(cls.__new__(cls, *given, **keywords))

    def _construct(self, target: Any, given: Any, called: bool) -> Any:
        _check(type(given) is tuple, "a constructor")
        if called and isinstance(target, _Shim):
            return target.build(self, target.function, given)
        if isinstance(target, type):
            if target in self.built:
                return self.built[target](self, target, given)
            if target in self.trusted:
                return target(*given) if called else target.__new__(target, *given)
            if target in self.plain and not called and not given:
                made: Any = object.__new__(target)
                if allowed.is_flat(target):
                    self.flat.append(made)
                return made
        return _refuse(f"calls {_kind(target)} with {len(given)} arguments")

    def load_build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        cls = type(target)
        if cls in _STATES:
            _STATES[cls](self, target, state)
        elif isinstance(target, np.dtype):
            # numpy's own code could turn it into any other; a plain one is complete as soon as it is made.
            _check(type(state) is tuple and target.__reduce__()[2] == state, "a numpy type")
        elif cls in self.built:
            _check(type(state) is bytes and cls.__module__.startswith("river._river_rust."), cls.__qualname__)
            cls.__setstate__(target, state)
        elif cls in self.trusted and hasattr(cls, "__setstate__"):
            cls.__setstate__(target, state)
        elif cls in self.plain or cls in self.trusted:
            _set_attributes(target, state)
        else:
            _refuse(f"sets attributes of {_kind(target)}")

    def load_append(self) -> None:
        self._extend([self.stack.pop()])

    def load_appends(self) -> None:
        self._extend(self.pop_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        _check(isinstance(target, list | collections.deque), "a list")
        target.extend(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._update([key, value])

    def load_setitems(self) -> None:
        self._update(self.pop_mark())

    def _update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        _check(isinstance(target, dict), "a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[self.key(key)] = value

    def load_additems(self) -> None:
        items = self.pop_mark()
        target = self.stack[-1]
        _check(type(target) is set, "a set")
        target.update(map(self.key, items))

    def load_frozenset(self) -> None:
        items = self.pop_mark()  # which changes what append is
        self.append(frozenset(map(self.key, items)))

    def load_bytearray8(self) -> None:
        # The base class allocates the length it is told before it reads.
        length = int.from_bytes(self.read(8), "little")
        data = bytearray(self.read(min(length, sys.maxsize)))
        _check(len(data) == length, "a bytearray")
        self.append(data)

    def load_refused(self) -> None:
        _refuse("holds an opcode that protocol 5 does not write for models")


_Build = Callable[[_Reader, Any, _Given], Any]


def _opcodes() -> dict[int, Callable[[Any], None]]:
    kept = """PROTO FRAME STOP MARK POP POP_MARK MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2
        LONG1 LONG4 BINFLOAT SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 EMPTY_LIST
        EMPTY_DICT EMPTY_SET EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 STACK_GLOBAL"""
    replaced = "REDUCE NEWOBJ NEWOBJ_EX BUILD APPEND APPENDS SETITEM SETITEMS ADDITEMS FROZENSET BYTEARRAY8"
    table: dict[int, Callable[[Any], None]] = dict.fromkeys(range(256), _Reader.load_refused)
    for name in kept.split():
        code = getattr(pickle, name)[0]
        table[code] = pickle._Unpickler.dispatch[code]
    for name in replaced.split():
        table[getattr(pickle, name)[0]] = getattr(_Reader, f"load_{name.lower()}")
    return table


_Reader.dispatch = _opcodes()


def _refuse(what: str) -> NoReturn:
    raise CheckpointError(f"the payload {what}, which no checkpoint may hold")


def _check(condition: bool, what: str) -> None:
    if not condition:
        _refuse(f"gives {what} a value of the wrong kind")


def _kind(target: Any) -> str:
    # Never its repr: that would run code on what the payload made.
    named = target.function if isinstance(target, _Shim) else target
    named = named if isinstance(named, type | types.FunctionType | types.BuiltinFunctionType) else type(named)
    return f"{named.__module__}.{named.__qualname__}"


def _set_attributes(target: Any, state: Any) -> None:
    cls = type(target)
    attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    for part in (attributes, slots):
        named = type(part) is dict and all(type(name) is str and not name.startswith("__") for name in part)
        _check(part is None or named, cls.__qualname__)
    if hasattr(cls, "__setstate__"):
        cls.__setstate__(target, state)
        return
    if attributes:
        vars(target).update((sys.intern(name), value) for name, value in attributes.items())
    for name, value in (slots or {}).items():
        _check(isinstance(getattr(cls, name, None), types.MemberDescriptorType), cls.__qualname__)
        setattr(target, name, value)


def _typed(*kinds: type | tuple[type, ...], least: int | None = None) -> _Build:
    """A shim that calls its target with arguments of exactly these types, the first `least` of them at least."""

    def build(reader: _Reader, target: Any, given: _Given) -> Any:
        fit = (len(kinds) if least is None else least) <= len(given) <= len(kinds)
        for value, kind in zip(given, kinds, strict=False):
            fit = fit and type(value) in (kind if isinstance(kind, tuple) else (kind,))
            reader.spend(len(value) if isinstance(value, dict | list | tuple) else 0)
        _check(fit, target.__qualname__)
        return target(*given)

    return build


def _numbers(_: _Reader, target: Any, given: _Given) -> Any:
    # The compiled parts of River abort the process, rather than raise, on a window too long for the memory.
    _check(_are_numbers(given), target.__qualname__)
    return target(*given)


def _are_numbers(values: Any) -> bool:
    return all(type(v) is float or (type(v) in (int, bool) and abs(v) <= _MOST) for v in values)


def _anything(_: _Reader, target: Any, given: _Given) -> Any:
    return target(*given)


def _factory(_: _Reader, target: Any, given: _Given) -> Any:
    _check(len(given) == 1 and (given[0] is None or callable(given[0])), "a default factory")
    return target(given[0])


def _vector_dict(reader: _Reader, target: Any, given: _Given) -> Any:
    data, factory, mask, copied = given
    _check(type(data) is dict and (factory is None or callable(factory)) and mask is None, "a VectorDict")
    reader.spend(len(data))
    return target(data, factory, None, copied is True)


def _bound_method(reader: _Reader, _: Any, given: _Given) -> Any:
    _check(len(given) == 2 and type(given[1]) is str, "getattr")
    owner, name = given
    if owner is str and name == "lower":
        return str.lower
    method = allowed.find_method(owner, name, reader.packages)
    if method is None:
        _refuse(f"fetches the attribute {name} of {_kind(owner)}")
    return types.MethodType(method, owner)


def _partial(reader: _Reader, target: Any, given: _Given) -> Any:
    _check(len(given) == 1 and allowed.is_partial_target(given[0], reader.packages), "a partial")
    return target(given[0])


def _set_partial(_: _Reader, target: functools.partial[Any], state: Any) -> None:
    _check(type(state) is tuple and len(state) == 4, "a partial")
    func, given, keywords, attributes = state
    _check(func is target.func and type(given) is tuple and type(keywords) is dict and not attributes, "a partial")
    if func is np.ones or func is np.array:
        numbers = given[0] if given and type(given[0]) is list else given
        _check(len(given) == 1 and _are_numbers(numbers) and not keywords, "a partial")
    target.__setstate__((func, given, keywords, None))  # type: ignore[attr-defined]


def _rebuild(_: _Reader, target: Any, given: _Given) -> Any:
    cls, arguments = given
    ours = isinstance(cls, type) and (cls.__module__, cls.__qualname__) in allowed.our_classes()
    _check(ours and type(arguments) is dict and all(type(name) is str for name in arguments), "an estimator")
    _check(all(map(_is_argument, arguments.values())), "an estimator")
    return target(cls, arguments)


def _is_argument(value: Any) -> bool:
    # A constructor shows what it does not accept: the text of a list of lists of lists may be endless.
    if isinstance(value, list | tuple):
        return all(_is_argument(item) and not isinstance(item, list | tuple) for item in value)
    return value is None or type(value) in (bool, int, float, str) or isinstance(value, base.Base)


_DTYPE = re.compile(r"b1|[iu][1248]|f[248]|c8|c16|O8|[SU][1-9]\d{0,3}")


def _dtype(_: _Reader, target: Any, given: _Given) -> Any:
    _check(len(given) == 3 and type(given[0]) is str and _DTYPE.fullmatch(given[0]) is not None, "a numpy type")
    return target(given[0])


def _scalar(_: _Reader, target: Any, given: _Given) -> Any:
    dtype, data = given
    _check(isinstance(dtype, np.dtype) and not dtype.hasobject and type(data) is bytes, "a numpy scalar")
    _check(len(data) == dtype.itemsize, "a numpy scalar")
    return target(dtype, data)


def _is_shape(shape: Any) -> bool:
    # An empty array may have any shape at all, and numpy loops over some of them.
    return type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape) and sum(shape) < 1 << 40


def _array_from_buffer(_: _Reader, target: Any, given: _Given) -> Any:
    _check(len(given) in (4, 5), "an array")
    buffer, dtype, shape, order = given[:4]
    _check(type(buffer) in (bytes, bytearray) and isinstance(dtype, np.dtype) and not dtype.hasobject, "an array")
    _check(_is_shape(shape) and len(buffer) == math.prod(shape) * dtype.itemsize and type(order) is str, "an array")
    return target(buffer, dtype, shape, *given[3:])


def _empty_array(_: _Reader, __: Any, given: _Given) -> Any:
    _check(given == (np.ndarray, (0,), b"b"), "an array")
    return np.empty(0)


def _set_array(reader: _Reader, target: np.ndarray[Any, Any], state: Any) -> None:
    _check(type(state) is tuple and len(state) == 5 and target.size == 0 and target.flags.owndata, "an array")
    _, shape, dtype, _, data = state
    _check(_is_shape(shape) and isinstance(dtype, np.dtype), "an array")
    entries = math.prod(shape)
    if dtype.hasobject:
        _check(type(data) is list and len(data) == entries, "an array")
    else:
        _check(type(data) is bytes and len(data) == entries * dtype.itemsize, "an array")
    reader.spend(len(data))
    target.__setstate__(state)


def _bit_generator(_: _Reader, __: Any, given: _Given) -> Any:
    _check(len(given) == 1 and given[0] is MT19937, "a bit generator")
    return MT19937()


def _seed_sequence(_: _Reader, __: Any, given: _Given) -> Any:
    _check(len(given) == 3 and given[0] is SeedSequence and given[2] is None, "a seed sequence")
    return SeedSequence(0)


def _is_twister(state: Any) -> bool:
    # numpy believes the position and reads there.
    key, position = state["state"]["key"], state["state"]["pos"]
    sound = isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (624,)
    return sound and type(position) is int and 0 <= position <= 624 and state["bit_generator"] == "MT19937"


def _set_bit_generator(_: _Reader, target: Any, state: Any) -> None:
    _check(_is_twister(state[0]) and isinstance(state[1], SeedSequence | None), "a bit generator")
    target.__setstate__(state)


def _set_random_state(_: _Reader, target: Any, state: Any) -> None:
    _check(_is_twister(state) and type(state["has_gauss"]) is int and type(state["gauss"]) is float, "a generator")
    target.__setstate__(state)


def _set_seed_sequence(_: _Reader, target: Any, state: Any) -> None:
    _, spawned, pool, size, key = state
    sound = isinstance(pool, np.ndarray) and pool.dtype == np.uint32 and pool.shape == (size,)
    _check(sound and type(spawned) is int and type(size) is int and type(key) is tuple, "a seed sequence")
    target.__setstate__(state)


def _set_random(_: _Reader, target: random.Random, state: Any) -> None:
    _check(type(state) is tuple and len(state) == 3 and state[0] == 3 and type(state[1]) is tuple, "a generator")
    target.setstate(state)


def _set_normal(_: _Reader, target: Any, state: Any) -> None:
    _check(type(state) is tuple and _are_numbers(state), "a distribution")
    target.__setstate__(state)


def _set_position(_: _Reader, target: Any, state: Any) -> None:
    _check(type(state) is int, "an iterator")
    target.__setstate__(state)


_SHIMS: dict[allowed.Name, _Build] = {
    **dict.fromkeys(allowed.NUMERIC_CLASSES, _numbers),
    ("builtins", "getattr"): _bound_method,
    ("builtins", "iter"): _typed(list),
    ("builtins", "range"): _typed(int, int, int),
    ("collections", "Counter"): _typed(dict, least=0),
    ("collections", "OrderedDict"): _typed(),
    ("collections", "defaultdict"): _factory,
    ("collections", "deque"): _typed(tuple, (int, types.NoneType), least=0),
    ("datetime", "date"): _typed(bytes),
    ("datetime", "datetime"): _typed(bytes, datetime.timezone, least=1),
    ("datetime", "timedelta"): _typed(int, int, int),
    ("datetime", "timezone"): _typed(datetime.timedelta),
    ("functools", "partial"): _partial,
    ("operator", "itemgetter"): _typed((str, int)),
    ("random", "Random"): _typed(),
    ("statistics", "NormalDist"): _typed(),
    ("numpy", "dtype"): _dtype,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy._core.numeric", "_frombuffer"): _array_from_buffer,
    ("numpy.random._pickle", "__bit_generator_ctor"): _bit_generator,
    ("numpy.random._pickle", "__randomstate_ctor"): _typed(MT19937),
    ("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"): _seed_sequence,
    ("river._river_rust.vectordict", "VectorDict"): _vector_dict,
    ("river.imblearn.hard_sampling", "Triplet"): _anything,
    ("streamkernel.state", "rebuild"): _rebuild,
}

_STATES: dict[type, Callable[[_Reader, Any, Any], None]] = {
    MT19937: _set_bit_generator,
    RandomState: _set_random_state,
    SeedSequence: _set_seed_sequence,
    functools.partial: _set_partial,
    np.ndarray: _set_array,
    random.Random: _set_random,
    statistics.NormalDist: _set_normal,
    type(iter([])): _set_position,
}
