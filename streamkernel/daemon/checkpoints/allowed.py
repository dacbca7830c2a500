"""Which names a checkpoint's payload may contain: those in `listed_names.py`, our own, and what the user trusts."""

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from river import base

from streamkernel.daemon.checkpoints.listed_names import (
    FUNCTIONS,
    METHODS,
    PARTIAL_TARGETS,
    RIVER_CLASSES,
    RIVER_NESTED_CLASSES,
    TYPES,
    Name,
)

# Packages of which no more may ever be restored than the lists say.
_LISTED = frozenset({"numpy", "river", "streamkernel"})


@functools.cache
def our_classes() -> frozenset[Name]:
    """Return the names of streamkernel's public estimators, their kernels, losses and other components."""
    names = set()
    for module in ("", ".gaussian_process", ".growth", ".kernels", ".losses", ".window"):
        public = importlib.import_module(f"streamkernel{module}")
        for name in getattr(public, "__all__", ()):
            found = getattr(public, name)
            if inspect.isclass(found) and issubclass(found, base.Base) and not inspect.isabstract(found):
                # What a public class makes may be of a subclass, one for each task.
                classes = [found, *(one for one in found.__subclasses__() if one.__module__ == found.__module__)]
                names |= {(one.__module__, one.__qualname__) for one in classes}
    return frozenset(names)


def is_plain(key: Name) -> bool:
    """Return whether the name is of a class that is restored as an empty instance and its attributes."""
    return key in RIVER_CLASSES or key in RIVER_NESTED_CLASSES or key in our_classes()


def is_flat(cls: type) -> bool:
    """Return whether instances of a class are written empty, and their attributes after everything else.

    A pickle descends into what it writes, and gives up at a few hundred levels. Some of River's trees are one long
    branch: a regression tree that sees a time stamp grows one of thousands.
    """
    return cls.__module__.startswith("river.tree.") and is_plain((cls.__module__, cls.__qualname__))


def is_listed(key: Name) -> bool:
    """Return whether the name may stand in a payload without a shim."""
    return is_plain(key) or key in TYPES or key in FUNCTIONS


def is_trusted(module: Any, packages: Sequence[str]) -> bool:
    """Return whether a module lies in one of the packages that the user trusts.

    River and streamkernel never do: to import them must not open what the lists above leave out.
    """
    if not isinstance(module, str) or module.split(".")[0] in ("river", "streamkernel"):
        return False
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def may_be_trusted(module: str) -> bool:
    """Return whether a user may have reason to trust a module: not Python's, nor of a package that the lists cover."""
    package = module.split(".")[0]
    return package.isidentifier() and package not in sys.stdlib_module_names and package not in _LISTED


def is_partial_target(target: Any, packages: Sequence[str] = ()) -> bool:
    """Return whether `functools.partial` may hold this target."""
    if isinstance(target, types.MethodType):
        return find_method(target.__self__, target.__name__, packages) is not None
    if not isinstance(target, type | types.FunctionType | types.BuiltinFunctionType):
        return type(target).__module__ == "river.optim.initializers"
    return (target.__module__, target.__qualname__) in PARTIAL_TARGETS or is_trusted(target.__module__, packages)


def find_method(owner: Any, name: str, packages: Sequence[str] = ()) -> Callable[..., Any] | None:
    """Return the function behind `owner.name` where it may be fetched, else None.

    It is looked up on the class: an instance's attributes come from the payload.
    """
    is_class = isinstance(owner, type)
    for cls in (owner if is_class else type(owner)).__mro__:
        if name in vars(cls):
            member = vars(cls)[name]
            if is_class != isinstance(member, classmethod):
                return None
            function = member.__func__ if is_class else member
            if not isinstance(function, types.FunctionType):
                return None
            key = (function.__module__, function.__qualname__)
            return function if key in METHODS or is_trusted(function.__module__, packages) else None
    return None


@functools.cache
def resolve(module: str, name: str) -> Any:
    """Return the object behind a listed name.

    Raises
    ------
    LookupError
        It is not there, or was defined elsewhere and is only imported there.

    """
    try:
        found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise LookupError(f"{module}.{name} is not there: another version of its package wrote it") from error
    if (found.__module__, found.__qualname__) != (module, name):
        raise LookupError(f"{module}.{name} is defined elsewhere, in {found.__module__}")
    return found
