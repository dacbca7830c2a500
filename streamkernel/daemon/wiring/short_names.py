"""What to write in place of a component's name without its module: `kernel: gaussian`."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Mapping

from river import base

__all__ = ["long_form"]

# Ours first: some of River's losses of the same name cannot be used.
_MODULES = (
    "streamkernel.kernels",
    "streamkernel.losses",
    "streamkernel.growth",
    "streamkernel.gaussian_process",
    "river.optim.losses",
    "river.optim.schedulers",
)


def long_form(written: object) -> str:
    """Return ``: write {its.dotted.Name: {}}`` for the bare name of a component or an expression of Python; else empty.

    Examples
    --------
    >>> long_form("gaussian"), long_form({"Huber": {"epsilon": 1}}), long_form("rbf")
    (': write {streamkernel.kernels.Gaussian: {}}', ': write {river.optim.losses.Huber: {epsilon: ...}}', '')
    >>> long_form("Gaussian() + 0.1 * DotProduct()")
    ': write {streamkernel.kernels.Sum: {left: ..., right: ...}}'

    """
    name, keywords = written, None
    if isinstance(written, Mapping) and len(written) == 1:
        name, keywords = next(iter(written.items()))
    if not isinstance(name, str):
        return ""
    if written is name:
        name, keywords = _outermost(name)
    for place in _MODULES:
        module = importlib.import_module(place)
        for known in getattr(module, "__all__", dir(module)):
            found = getattr(module, known)
            if known.lower() == name.lower() and _is_component(found):
                arguments = ", ".join(f"{key}: ..." for key in keywords) if isinstance(keywords, Mapping) else ""
                return f": write {{{place}.{known}: {{{arguments}}}}}"
    return ""


def _outermost(written: str) -> tuple[str, Mapping[str, object] | None]:
    """The name and arguments of the component that an expression makes last; any other text as it is."""
    try:
        made = ast.parse(written.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return written, None
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name):
        return made.func.id, dict.fromkeys((one.arg for one in made.keywords if one.arg), None)
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add):
        return "Sum", {"left": None, "right": None}
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult):
        factors = isinstance(made.left, ast.Constant), isinstance(made.right, ast.Constant)
        if any(factors):
            return "Scaled", {"kernel": None, "factor": None}
        return "Product", {"left": None, "right": None}
    return written, None


def _is_component(found: object) -> bool:
    return inspect.isclass(found) and issubclass(found, base.Base) and not inspect.isabstract(found)
