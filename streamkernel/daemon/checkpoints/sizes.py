"""Bounds on the size of estimators of ours that a payload may ask for.

Some arguments decide how much memory a constructor takes. Each is at most the default or what the configuration says.
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from river import base

from streamkernel.daemon.base.errors import OtherModelError
from streamkernel.daemon.checkpoints.allowed import is_ours

__all__ = ["Sizes", "refuse_larger", "sizes_of"]

#: By class and argument, the largest number or the longest list.
Sizes: TypeAlias = Mapping[tuple[type, str], int]


def sizes_of(model: base.Base) -> dict[tuple[type, str], int]:
    """Return the sizes that a configuration asks for, from the model that it describes.

    Examples
    --------
    >>> from streamkernel import KernelClassifier
    >>> sizes_of(KernelClassifier(max_features=8192))[KernelClassifier, "max_features"]
    8192

    """
    found: dict[tuple[type, str], int] = {}
    for component in _components(model):
        for name in inspect.signature(type(component)).parameters:
            key = type(component), name
            found[key] = max(_size(getattr(component, name, None)), found.get(key, 0))
    return found


def refuse_larger(cls: type, arguments: Mapping[str, Any], sizes: Sizes) -> None:
    """Raise OtherModelError, with the argument, if one asks for more than the configuration and the defaults do."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
    defaults |= getattr(cls, "default_sizes", {})
    for name, value in arguments.items():
        if defaults.get(name) is None:  # a seed is no size, however large, and a kernel or a loss is none
            continue
        most = max(sizes.get((cls, name), 0), _size(defaults[name]))
        if _size(value) > most:
            shown = f"{len(value)} entries" if isinstance(value, list | tuple) else f"{value:,}"
            raise OtherModelError(
                [f"{cls.__qualname__}.{name}: checkpoint has {shown}, configuration says at most {most}"]
            )


def _size(value: Any) -> int:
    if isinstance(value, list | tuple):
        return len(value)
    return value if type(value) is int else 0


def _components(value: Any, depth: int = 50) -> Iterator[base.Base]:
    parts: list[Any] = []
    if isinstance(value, base.Base):
        parts = list(vars(value).values()) if hasattr(value, "__dict__") else []
        kind: Any = type(value)
        if is_ours(kind):
            yield value
    elif isinstance(value, dict | list | tuple):
        parts = list(value.values() if isinstance(value, dict) else value)
    for part in parts if depth else ():
        yield from _components(part, depth - 1)
