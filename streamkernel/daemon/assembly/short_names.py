"""What to write in place of a component's name without its module: `kernel: gaussian`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping

from river import base

from streamkernel.daemon.assembly.kernel_expressions import written_out

__all__ = ["long_form"]

# Ours first: some of River's losses of the same name cannot be used.
_MODULES = (
    "streamkernel",
    "streamkernel.kernels",
    "streamkernel.losses",
    "streamkernel.growth",
    "streamkernel.gaussian_process",
    "streamkernel.window",
    "river.optim.losses",
    "river.optim.schedulers",
)


def long_form(written: object) -> str:
    """Return ``: write {its.dotted.Name: {}}`` for the bare name of a component.

    An expression of kernels is written out; for anything else it is empty.

    Examples
    --------
    >>> long_form("gaussian"), long_form({"Huber": {"epsilon": 1}}), long_form("rbf")
    (': write {streamkernel.kernels.Gaussian: {}}', ': write {river.optim.losses.Huber: {epsilon: ...}}', '')

    """
    name, keywords = written, None
    if isinstance(written, Mapping) and len(written) == 1:
        name, keywords = next(iter(written.items()))
    if not isinstance(name, str):
        return ""
    for place in _MODULES:
        module = importlib.import_module(place)
        for known in getattr(module, "__all__", dir(module)):
            found = getattr(module, known)
            if known.lower() == name.lower() and _is_component(found):
                arguments = ", ".join(f"{key}: ..." for key in keywords) if isinstance(keywords, Mapping) else ""
                return f": write {{{place}.{known}: {{{arguments}}}}}"
    expression = written_out(name)
    return f": write {expression}" if expression else ""


def _is_component(found: object) -> bool:
    return inspect.isclass(found) and issubclass(found, base.Base) and not inspect.isabstract(found)
