"""A pickle reader that builds what `allowed.py` permits and refuses everything else.

A pickle is a program: the standard reader would run whatever a checkpoint's author wrote. This reader narrows it:

- a class of River or streamkernel gives an empty instance (no `__init__`, no arguments), then its attributes are set;
- calls with arguments (`getattr`, `partial`, arrays, ...) go through a shim of `shims.py`, which checks
  them;
- attributes are set on instances made here, not on a class, function or module, and never a `__special__` one;
- opcodes that protocol 5 does not write for such objects (GLOBAL, INST, EXT1, PERSID, ...) are refused;
- the length of the payload bounds what is copied or allocated.

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

from streamkernel.daemon.base.errors import CheckpointError, OtherFormatError, UnfitError
from streamkernel.daemon.checkpoints import allowed
from streamkernel.daemon.checkpoints.shims import (
    MOST,
    SHIMMED,
    SHIMS,
    STATES,
    Shim,
    check,
    kind_of,
    maker_of,
    refuse,
)
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
    listed = (module, name) in SHIMMED or allowed.find(module, name) is not None
    return listed or (allowed.is_trusted(module, packages) and "." not in name)


class _RestrictedUnpickler(pickle._Unpickler):
    stack: list[Any]
    append: Callable[[Any], None]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, data: bytes, packages: Sequence[str], sizes: Sizes) -> None:
        super().__init__(io.BytesIO(data))
        self.packages = packages
        self.sizes = sizes
        self.budget = 3 * len(data) + MOST
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

    def find_class(self, module: str, name: str) -> Any:
        found = SHIMMED.get((module, name))
        if found is not None:
            return found if isinstance(found, type) else Shim(found)
        found = allowed.find(module, name)
        return self._find_trusted(module, name) if found is None else found

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
        return found

    def _is_trusted(self, cls: Any) -> bool:
        return isinstance(cls, type) and allowed.is_trusted(cls.__module__, self.packages)

    def load_reduce(self) -> None:
        given = self.stack.pop()
        self.stack[-1] = self._construct(self.stack[-1], given, called=True)

    def load_newobj(self) -> None:
        given = self.stack.pop()
        self.stack[-1] = self._construct(self.stack[-1], given, called=False)

    def load_newobj_ex(self) -> None:
        keywords, given, cls = self.stack.pop(), self.stack.pop(), self.stack.pop()
        check(self._is_trusted(cls), "a class")
        self.append(cls.__new__(cls, *given, **keywords))

    def _construct(self, target: Any, given: Any, called: bool) -> Any:
        check(type(given) is tuple, "a constructor")
        if called and isinstance(target, Shim):
            return SHIMS[target.function](self, target.function, given)
        if isinstance(target, type):
            if (build := maker_of(target)) is not None:
                return build(self, target, given)
            if self._is_trusted(target):
                return target(*given) if called else target.__new__(target, *given)
            if allowed.is_plain(target) and not called and not given:
                made: Any = object.__new__(target)
                if allowed.is_flat(target):
                    self.flat.append(made)
                return made
        return refuse(f"calls {kind_of(target)} with {len(given)} arguments")

    def load_build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        cls: Any = type(target)
        if cls in STATES:
            STATES[cls](self, target, state)
        elif allowed.is_compiled(cls):
            check(type(state) is bytes, cls.__qualname__)
            cls.__setstate__(target, state)
        elif self._is_trusted(cls) and hasattr(cls, "__setstate__"):
            cls.__setstate__(target, state)
        elif allowed.is_plain(cls) or self._is_trusted(cls):
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
        target.extend(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._update([key, value])

    def load_setitems(self) -> None:
        self._update(self.pop_mark())

    def _update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        check(isinstance(target, dict), "a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key] = value

    def load_additems(self) -> None:
        items = self.pop_mark()
        target = self.stack[-1]
        check(type(target) is set, "a set")
        target.update(items)

    def load_bytearray8(self) -> None:
        # The base class allocates the length that the payload states before it reads.
        length = int.from_bytes(self.read(8), "little")
        data = bytearray(self.read(min(length, sys.maxsize)))
        check(len(data) == length, "a bytearray")
        self.append(data)

    def load_refused(self) -> None:
        refuse("holds an opcode that protocol 5 does not write for models")


def _opcodes() -> dict[int, Callable[[Any], None]]:
    kept = """PROTO FRAME STOP MARK POP POP_MARK MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2
        LONG1 LONG4 BINFLOAT SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 EMPTY_LIST
        EMPTY_DICT EMPTY_SET FROZENSET EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 STACK_GLOBAL"""
    replaced = "REDUCE NEWOBJ NEWOBJ_EX BUILD APPEND APPENDS SETITEM SETITEMS ADDITEMS BYTEARRAY8"
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
