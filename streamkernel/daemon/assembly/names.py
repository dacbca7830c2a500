"""Finds the class that a configuration names, in the packages that it may name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from types import ModuleType

from river import base

from streamkernel.connectors.names import hint

__all__ = ["HOME", "NameRefused", "full_name", "long_form", "resolve"]

HOME = ("river", "streamkernel")
# These parts of River hold its test bench and its data: they re-export foreign modules and download files.
_CLOSED = ("river.checks", "river.datasets", "river.stream")

# Where a bare name is looked for. Ours come first: some of River's losses of the same name cannot be used.
_MODULES = (
    *("streamkernel", "streamkernel.kernels", "streamkernel.losses", "streamkernel.growth"),
    *("streamkernel.gaussian_process", "streamkernel.window", "river.optim.losses", "river.optim.schedulers"),
)


class NameRefused(Exception):
    """A name of no class that the configuration may use."""


def resolve(name: str, imports: Sequence[str] = ()) -> type[base.Base]:
    """Find a class by its dotted name.

    Parameters
    ----------
    name
        Such as ``river.linear_model.LogisticRegression``.
    imports
        Packages in addition to ``river`` and ``streamkernel``.

    Raises
    ------
    NameRefused
        If there is no such class in these packages, or if it is no part of a River model.

    Examples
    --------
    >>> resolve("river.preprocessing.StandardScaler").__name__
    'StandardScaler'
    >>> resolve("os.system")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    streamkernel.daemon.assembly.names.NameRefused: os.system is outside river and streamkernel; ...

    """
    packages = (*HOME, *imports)
    if not _inside(name, packages):
        full = full_name(name)
        advice = "; list its package under imports" if full is None else f", did you mean {full!r}?"
        raise NameRefused(f"{name} is outside {' and '.join(packages)}{advice}")
    if _inside(name, _CLOSED):
        raise NameRefused(f"{name} is not part of a model")
    found = _lookup(name)
    if not inspect.isclass(found) or not issubclass(found, base.Base):
        raise NameRefused(f"{name} is not a class of a River model")
    # A module re-exports what it imported: the class itself must live where the name says it may.
    if not _inside(found.__module__, packages) or _inside(found.__module__, _CLOSED):
        raise NameRefused(f"{name} comes from {found.__module__}, outside {' and '.join(packages)}")
    if inspect.isabstract(found):
        raise NameRefused(f"{name} is abstract, name one of its subclasses")
    return found


def full_name(name: str) -> str | None:
    """Return the full dotted name of a class of River or ours that lacks its package; None if there is no such class.

    Examples
    --------
    >>> full_name("preprocessing.StandardScaler"), full_name("AdaptiveKernelClassifier"), full_name("os.system")
    ('river.preprocessing.StandardScaler', 'streamkernel.AdaptiveKernelClassifier', None)

    """
    for package in HOME:
        try:
            resolve(f"{package}.{name}")
        except NameRefused:
            continue
        return f"{package}.{name}"
    return None


def long_form(written: object) -> str:
    """Return ``: write {its.dotted.Name: {}}`` for the bare name of a component; nothing for another value.

    Examples
    --------
    >>> long_form("gaussian"), long_form({"Huber": {"epsilon": 1}}), long_form("rbf")
    (': write {streamkernel.kernels.Gaussian: {}}', ': write {river.optim.losses.Huber: {epsilon: ...}}', '')

    """
    name, keywords = (
        next(iter(written.items())) if isinstance(written, Mapping) and len(written) == 1 else (written, ())
    )
    if not isinstance(name, str):
        return ""
    arguments = ", ".join(f"{key}: ..." for key in (keywords if isinstance(keywords, Mapping) else ()))
    for place in _MODULES:
        module = importlib.import_module(place)
        for known in getattr(module, "__all__", dir(module)):
            found = getattr(module, known)
            component = inspect.isclass(found) and issubclass(found, base.Base) and not inspect.isabstract(found)
            if component and known.lower() == name.lower():
                return f": write {{{place}.{known}: {{{arguments}}}}}"
    return ""


def _inside(name: str, packages: Sequence[str]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def _lookup(name: str) -> object:
    """Follow the attributes of the package, and import the modules among them."""
    parts = name.split(".")
    if not all(part.isidentifier() and not part.startswith("_") for part in parts):
        raise NameRefused(f"{name} is not a public name")
    found: object = _module(parts[0])
    if found is None:
        raise NameRefused(f"the package {parts[0]} is not installed")
    for depth, part in enumerate(parts[1:], start=1):
        holder, path = ".".join(parts[:depth]), ".".join(parts[: depth + 1])
        inner = getattr(found, part, None)
        if inner is None and isinstance(found, ModuleType):
            inner = _module(path)
        if inner is None:
            known = [one for one in dir(found) if not one.startswith("_")]
            raise NameRefused(f"{holder} has no {part}{hint(part, known)}")
        found = inner
    return found


def _module(path: str) -> ModuleType | None:
    """Import a module; None if there is none of this name."""
    try:
        return importlib.import_module(path)
    except Exception as error:  # an import runs code, which raises what it likes
        if isinstance(error, ModuleNotFoundError) and error.name == path:
            return None
        raise NameRefused(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
