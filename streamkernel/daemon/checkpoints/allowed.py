"""Which classes and functions a checkpoint's payload may name.

A payload may name four things:

- a class or function that River defines in a package of models: estimators, metrics, statistics and their parts;
- an estimator, kernel or other component of streamkernel;
- one of the few names of Python and numpy in `OTHERS`, or a function behind a shim;
- what the user trusts: packages listed under ``imports``.

The object must be defined in the module that the payload names. A module of River that imports numpy does not offer
`numpy.memmap`. Data sets, streams, checks and adapters of River stay out: they read files and the network.
"""

import collections
import copy
import functools
import importlib
import math
import numbers
import random
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
from river import base
from river._river_rust import vectordict

#: (module, qualified name)
Name = tuple[str, str]

_PACKAGES = """
    active anomaly bandit base cluster compose conf covariance drift dummy ensemble facto feature_extraction
    feature_selection forest imblearn linear_model metrics misc model_selection multiclass multioutput naive_bayes
    neighbors optim preprocessing proba reco rules sketch stats time_series tree utils
"""
_RIVER = frozenset(_PACKAGES.split())
_NOT_RIVER = frozenset({"context_managers", "datasets", "envs", "pretty"})
_OURS = ("", ".gaussian_process", ".growth", ".kernels", ".losses", ".window")
# It knows its leaves by their addresses in memory, which no pickle keeps.
_UNRESTORABLE = ("river.feature_extraction.kernel_approx", "RandomTreesEmbedding")


def name_of(found: Any) -> Name:
    """Return the module and the qualified name of a class or function."""
    return found.__module__, found.__qualname__


_TYPES = bool, bytes, dict, float, frozenset, int, list, set, str, tuple, numbers.Number
_FUNCTIONS = copy.deepcopy, math.exp, math.expm1, math.log, math.log10, math.log1p, math.log2, math.sqrt
_OF_RIVER = vectordict.euclidean_distance_dict, vectordict.euclidean_distance_tuple
#: What a payload may refer to in addition to classes and functions of River and streamkernel.
OTHERS: dict[Name, Any] = {name_of(one): one for one in (*_TYPES, *_FUNCTIONS, *_OF_RIVER, np.array, np.ones)}
_PARTIAL_TARGETS = (float, int, tuple, collections.defaultdict, copy.deepcopy, np.array, np.ones)


@functools.cache
def _load_packages() -> None:
    for package in _RIVER:
        importlib.import_module(f"river.{package}")
    for package in _OURS:
        public = importlib.import_module(f"streamkernel{package}")
        for name in getattr(public, "__all__", ()):
            getattr(public, name)  # some are imported when they are used first


def in_river(module: Any) -> bool:
    """Return whether River defines models or their parts in a module of this name."""
    parts = module.split(".") if isinstance(module, str) else []
    return parts[:1] == ["river"] and len(parts) > 1 and parts[1] in _RIVER and _NOT_RIVER.isdisjoint(parts)


def is_compiled(cls: type) -> bool:
    """Return whether a class is of the compiled part of River, which takes numbers only."""
    return cls.__module__ in ("river._river_rust.drift", "river._river_rust.stats")


@functools.cache
def is_ours(cls: type) -> bool:
    """Return whether a class is a component of streamkernel."""
    return cls.__module__.startswith("streamkernel.") and issubclass(cls, base.Base)


@functools.cache
def is_plain(cls: type) -> bool:
    """Return whether the reader makes an empty instance of a class and sets its attributes."""
    # A class is an instance, too: of its metaclass, and a payload must not set attributes of it.
    return (in_river(cls.__module__) or is_ours(cls)) and not issubclass(cls, type | BaseException)


def is_flat(cls: type) -> bool:
    """Return whether instances of a class are written empty, and their attributes after everything else.

    A pickle descends into what it writes, and gives up at a few hundred levels. Some of River's trees are one long
    branch: a regression tree that sees a time stamp grows one of thousands.
    """
    return cls.__module__.startswith("river.tree.") and is_plain(cls)


@functools.cache
def find(module: str, name: str) -> Any:
    """Return the class or function that a payload may name without trust, None if there is none.

    Nothing is imported for a payload: the object must be in a module that is loaded already.
    """
    if (module, name) in OTHERS:
        return OTHERS[module, name]
    if (module, name) == _UNRESTORABLE:
        return None
    _load_packages()
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        # The namespace itself: `getattr` would run code of River's.
        found = vars(found).get(part) if isinstance(found, types.ModuleType | type) and part[:2] != "__" else None
        found = found.__func__ if isinstance(found, staticmethod) else found
    if not isinstance(found, type | types.FunctionType) or name_of(found) != (module, name):
        return None
    if isinstance(found, type):
        return found if is_plain(found) or is_compiled(found) else None
    return found if in_river(module) else None


def is_trusted(module: Any, packages: Sequence[str]) -> bool:
    """Return whether a module lies in one of the packages that the user trusts.

    River and streamkernel never do: to import them must not open what the rules above leave out.
    """
    if not isinstance(module, str) or module.split(".")[0] in ("river", "streamkernel"):
        return False
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def may_be_trusted(module: str) -> bool:
    """Return whether a user may have reason to trust a module: not Python's, numpy's, River's or ours."""
    package = module.split(".")[0]
    covered = package in sys.stdlib_module_names or package in ("numpy", "river", "streamkernel")
    return package.isidentifier() and not covered


def is_partial_target(target: Any, packages: Sequence[str] = ()) -> bool:
    """Return whether `functools.partial` may hold this target."""
    if isinstance(target, types.MethodType):
        return find_method(target.__self__, target.__name__, packages) is not None
    if not isinstance(target, type | types.FunctionType | types.BuiltinFunctionType):
        return type(target).__module__ == "river.optim.initializers"
    return target in _PARTIAL_TARGETS or in_river(target.__module__) or is_trusted(target.__module__, packages)


def find_method(owner: Any, name: str, packages: Sequence[str] = ()) -> types.FunctionType | None:
    """Return the function behind ``owner.name`` if River or a trusted package defines it, else None.

    The class of the owner is searched: an instance's attributes come from the payload.
    """
    cls, kind = (owner, classmethod) if isinstance(owner, type) else (type(owner), types.FunctionType)
    function = next((vars(one)[name] for one in cls.__mro__ if name in vars(one) and name[:2] != "__"), None)
    if not isinstance(function, kind):
        return None
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return None
    allowed = in_river(function.__module__) or is_trusted(function.__module__, packages)
    return function if allowed or function is random.Random.gauss else None
