"""Bounds on the size of estimators of ours that a checkpoint may ask for.

Some arguments say how much memory a constructor takes. A payload that was forged must not choose them: each is at most
what the configuration says, or the default.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from river import base

from streamkernel.daemon.base.errors import OtherModelError
from streamkernel.daemon.checkpoints import allowed

__all__ = ["Sizes", "refuse_larger", "sizes_of"]

#: By class and argument, the largest number or the longest list.
Sizes: TypeAlias = Mapping[tuple[type, str], int]

_DEEPEST = 50


def sizes_of(model: base.Base) -> dict[tuple[type, str], int]:
    """Return the sizes that a configuration asks for, from the model that it describes.

    Examples
    --------
    >>> from streamkernel import KernelClassifier
    >>> sizes_of(KernelClassifier(max_features=8192))[KernelClassifier, "max_features"]
    8192

    """
    found: dict[tuple[type, str], int] = {}
    for component in _components(model, 0):
        cls = type(component)
        if (cls.__module__, cls.__qualname__) not in allowed.our_classes():
            continue
        for name in inspect.signature(cls).parameters:
            size = _size(getattr(component, name, None))
            found[cls, name] = max(size, found.get((cls, name), 0))
    return found


def refuse_larger(cls: type, arguments: Mapping[str, Any], sizes: Sizes) -> None:
    """Refuse arguments that ask for more than the configuration and the defaults do.

    Raises
    ------
    OtherModelError
        Naming the argument.

    """
    defaults = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
    defaults |= getattr(cls, "default_sizes", {})
    for name, value in arguments.items():
        if defaults.get(name) is None:  # a seed is no size, however large, and a kernel or a loss is none
            continue
        most = max(sizes.get((cls, name), 0), _size(defaults[name]))
        if _size(value) > most:
            raise OtherModelError(
                [
                    f"{cls.__qualname__}.{name}: checkpoint has {_shown(value)}, configuration says at most {most}",
                ]
            )


def _size(value: Any) -> int:
    if isinstance(value, list | tuple):
        return len(value)
    return value if type(value) is int else 0


def _shown(value: Any) -> str:
    return f"{len(value)} entries" if isinstance(value, list | tuple) else f"{value:,}"


def _components(value: Any, depth: int) -> Iterator[base.Base]:
    if depth > _DEEPEST:
        return
    if isinstance(value, base.Base):
        yield value
        parts = list(vars(value).values()) if hasattr(value, "__dict__") else []
    elif isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = list(value)
    else:
        return
    for part in parts:
        yield from _components(part, depth + 1)
