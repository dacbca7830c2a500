"""A pickle reader that builds listed objects and refuses everything else.

A pickle is a program: whoever can write a checkpoint could run anything with the standard reader. This one looks every
name up in the exact lists of `listed_names.py`, and narrows what may be done with what it finds:

- a listed class gives an empty instance (no `__init__`, no arguments), then its attributes are set;
- what must be called with arguments (`getattr`, `partial`, numpy's constructors, ...) goes through one of
  `shims.py`: code of ours that checks the arguments. The functions behind shims are never handed out;
- attributes are set on instances made here only, not on a class, function or module, and never a `__special__` one;
- opcodes that protocol 5 does not write for such objects (GLOBAL, INST, EXT1, PERSID, ...) are refused;
- what is copied or allocated is bounded by the length of the payload.

It is the standard library's pure Python reader with some opcodes replaced.
"""

import collections
import importlib
import io
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streamkernel.daemon.base.errors import CheckpointError, OtherFormatError, UnfitError
from streamkernel.daemon.checkpoints import allowed
from streamkernel.daemon.checkpoints.nesting import DEEPEST, Nesting
from streamkernel.daemon.checkpoints.shims import MOST, SHIMS, STATES, Build, Shim, check, kind_of, refuse
from streamkernel.daemon.checkpoints.sizes import Sizes
from streamkernel.fields import OtherVersionError

_NO_SIZES: Sizes = {}


def loads(data: bytes, packages: Sequence[str] = (), sizes: Sizes = _NO_SIZES) -> Any:
    """Restore an object from a pickle, running nothing but what is listed.

    Parameters
    ----------
    data
        What `streamkernel.daemon.checkpoints.payload.dump_model` pickled.
    packages
        Names of packages whose classes and functions are trusted as well; none by default.
    sizes
        How large estimators of ours may be; no larger than their defaults by default.

    Raises
    ------
    UnfitError
        They name a class of a package that is not trusted or not there, or ask for more memory than there is.
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
    streamkernel.daemon.base.errors.CheckpointError: the payload names posix.system, which no checkpoint may hold

    """
    try:
        return _RestrictedUnpickler(data, packages, sizes).restore()
    except (CheckpointError, KeyboardInterrupt, SystemExit):
        raise
    except OtherVersionError as error:
        raise OtherFormatError(str(error)) from error
    except MemoryError as error:
        raise UnfitError("the model does not fit into memory") from error
    except BaseException as error:  # the compiled parts of River raise a PanicException, which is no Exception
        raise CheckpointError(f"the payload cannot be restored: {type(error).__name__}: {error!s:.200}") from error


def permits(module: str, name: str, packages: Sequence[str] = ()) -> bool:
    """Return whether a payload may contain this name."""
    key = (module, name)
    return key in SHIMS or allowed.is_listed(key) or (allowed.is_trusted(module, packages) and "." not in name)


class _RestrictedUnpickler(pickle._Unpickler):
    stack: list[Any]
    append: Callable[[Any], None]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, data: bytes, packages: Sequence[str], sizes: Sizes) -> None:
        super().__init__(io.BytesIO(data))
        self.packages = packages
        self.sizes = sizes
        self.nest = Nesting().put
        self.budget = 2 * len(data) + MOST
        self.patience = 16 * len(data) + MOST
        self.plain: set[type] = set()
        self.trusted: set[type] = set()
        self.built: dict[type, Build] = {}
        self.flat: list[Any] = []

    def restore(self) -> Any:
        """Return the object of the first pickle; those after it hold the attributes of flat instances, in rounds."""
        root = self.load()
        while self.flat:
            made, self.flat = self.flat, []
            states = self.load()
            check(type(states) is list and len(states) == len(made), "a tree")
            for one, state in zip(made, states, strict=True):
                _set_attributes(one, state)
        return root

    def spend(self, amount: int) -> None:
        """Account for something copied: a payload that refers to one thing many times must not multiply it."""
        self.budget -= amount
        if self.budget < 0:
            refuse("asks for more memory than its length accounts for")

    def key(self, key: Any) -> Any:
        """Return a key if hashing it ends soon: tuples in tuples, each twice in the next, would take for ever."""
        depth, pending = 0, [key] if isinstance(key, tuple | frozenset) else []
        while pending:
            self.patience -= sum(map(len, pending))
            if self.patience < 0:
                refuse("has a dictionary key that takes too long")
            depth += 1
            if depth > DEEPEST:  # hashing descends, and the stack of the process ends somewhere
                refuse("has a dictionary key that is nested too deeply")
            pending = [item for items in pending for item in items if isinstance(item, tuple | frozenset)]
        return key

    def find_class(self, module: str, name: str) -> Any:
        key = (module, name)
        build = SHIMS.get(key)
        if build is None and not allowed.is_listed(key):
            return self._find_trusted(module, name)
        try:
            found = allowed.resolve(module, name)
        except LookupError as error:
            raise UnfitError(f"the payload needs a name that is missing: {error}") from error
        if build is not None and not isinstance(found, type):
            return Shim(found, build)
        if build is not None:
            self.built[found] = build
        elif allowed.is_plain(key):
            self.plain.add(found)
        return found

    def _find_trusted(self, module: str, name: str) -> Any:
        if not allowed.is_trusted(module, self.packages) or "." in name:
            if allowed.may_be_trusted(module):
                raise UnfitError(
                    f"the payload names {module}.{name}, which no checkpoint may hold unless its package is listed "
                    "under imports"
                )
            refuse(f"names {module}.{name}")
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError as error:
            raise UnfitError(f"the payload names {module}.{name}, which cannot be imported: {error}") from error
        if not isinstance(found, type | types.FunctionType | types.BuiltinFunctionType) or found.__module__ != module:
            refuse(f"names {module}.{name}, no class or function of that module,")
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
        check(isinstance(cls, type) and cls in self.trusted, "a class")
        self.append(cls.__new__(cls, *given, **keywords))

    def _construct(self, target: Any, given: Any, called: bool) -> Any:
        check(type(given) is tuple, "a constructor")
        if called and isinstance(target, Shim):
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
        return refuse(f"calls {kind_of(target)} with {len(given)} arguments")

    def load_build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        cls = type(target)
        if cls in STATES:
            STATES[cls](self, target, state)
        elif isinstance(target, np.dtype):
            # numpy's own code could turn it into any other; a plain one is complete as soon as it is made.
            check(type(state) is tuple and target.__reduce__()[2] == state, "a numpy type")
        elif cls in self.built:
            check(type(state) is bytes and cls.__module__.startswith("river._river_rust."), cls.__qualname__)
            cls.__setstate__(target, state)
        elif cls in self.trusted and hasattr(cls, "__setstate__"):
            cls.__setstate__(target, state)
        elif cls in self.plain or cls in self.trusted:
            _set_attributes(target, state)
        else:
            refuse(f"sets attributes of {kind_of(target)}")

    def load_append(self) -> None:
        self._extend([self.stack.pop()])

    def load_appends(self) -> None:
        self._extend(self.pop_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        check(isinstance(target, list | collections.deque), "a list")
        if type(target) is not list:
            self.nest(target, items)
        target.extend(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._update([key, value])

    def load_setitems(self) -> None:
        self._update(self.pop_mark())

    def _update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        check(isinstance(target, dict), "a dictionary")
        if type(target) is collections.defaultdict:
            self.nest(target, items[1::2])
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[self.key(key)] = value

    def load_additems(self) -> None:
        items = self.pop_mark()
        target = self.stack[-1]
        check(type(target) is set, "a set")
        target.update(map(self.key, items))

    def load_frozenset(self) -> None:
        items = self.pop_mark()  # which changes what append is
        self.append(frozenset(map(self.key, items)))

    def load_bytearray8(self) -> None:
        # The base class allocates the length it is told before it reads.
        length = int.from_bytes(self.read(8), "little")
        data = bytearray(self.read(min(length, sys.maxsize)))
        check(len(data) == length, "a bytearray")
        self.append(data)

    def load_refused(self) -> None:
        refuse("holds an opcode that protocol 5 does not write for models")


def _opcodes() -> dict[int, Callable[[Any], None]]:
    kept = """PROTO FRAME STOP MARK POP POP_MARK MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2
        LONG1 LONG4 BINFLOAT SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 EMPTY_LIST
        EMPTY_DICT EMPTY_SET EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 STACK_GLOBAL"""
    replaced = "REDUCE NEWOBJ NEWOBJ_EX BUILD APPEND APPENDS SETITEM SETITEMS ADDITEMS FROZENSET BYTEARRAY8"
    table: dict[int, Callable[[Any], None]] = dict.fromkeys(range(256), _RestrictedUnpickler.load_refused)
    for name in kept.split():
        code = getattr(pickle, name)[0]
        table[code] = pickle._Unpickler.dispatch[code]
    for name in replaced.split():
        table[getattr(pickle, name)[0]] = getattr(_RestrictedUnpickler, f"load_{name.lower()}")
    return table


_RestrictedUnpickler.dispatch = _opcodes()


def _set_attributes(target: Any, state: Any) -> None:
    cls = type(target)
    attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    for part in (attributes, slots):
        named = type(part) is dict and all(type(name) is str and not name.startswith("__") for name in part)
        check(part is None or named, cls.__qualname__)
    if hasattr(cls, "__setstate__"):
        cls.__setstate__(target, state)
        return
    if attributes:
        vars(target).update((sys.intern(name), value) for name, value in attributes.items())
    for name, value in (slots or {}).items():
        check(isinstance(getattr(cls, name, None), types.MemberDescriptorType), cls.__qualname__)
        setattr(target, name, value)
