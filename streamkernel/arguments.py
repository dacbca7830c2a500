"""The arguments of components and estimators: checks, attributes, and a representation like the constructor's call.

Each check refuses a value that does not fit by a ValueError with the name of the argument.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import numpy as np
from river import base

from streamkernel.finite import is_finite
from streamkernel.state import excerpt


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number, and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number of any size, and no boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number with a finite float, and no boolean."""
    return is_number(value) and is_finite(value)


def require_whole(name: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Refuse a value that is not a whole number from `least` to `most`."""
    if not (is_whole(value) and value >= least):
        raise ValueError(f"{name} must be a whole number of at least {least}, got {excerpt(value)}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be a whole number of at most {most:,}, got {excerpt(value)}")


def require_number(name: str, value: object, wanted: str, fits: Callable[[float], bool]) -> None:
    """Refuse a value that is not a finite number which fits; `wanted` says which numbers do.

    Examples
    --------
    >>> require_number("nu", -1, "a number from 0 up", lambda nu: nu >= 0)
    Traceback (most recent call last):
    ValueError: nu must be a number from 0 up, got -1

    """
    if not (is_finite_number(value) and fits(value)):
        raise ValueError(f"{name} must be {wanted}, got {excerpt(value)}")


def require_positive(name: str, value: object) -> None:
    """Refuse a value that is not a finite number above 0."""
    require_number(name, value, "a finite number above 0", lambda number: number > 0)


def require_from_zero(name: str, value: object) -> None:
    """Refuse a value that is not a finite number from 0 up."""
    require_number(name, value, "a finite number from 0 up", lambda number: number >= 0)


def require_flag(name: str, value: object, or_none: bool = False) -> None:
    """Refuse a value that is not True or False, or None where that is a default."""
    if not (isinstance(value, bool) or (or_none and value is None)):
        wanted = "True, False or None" if or_none else "True or False"
        raise ValueError(f"{name} must be {wanted}, got {excerpt(value)}")


def require_seed(value: object) -> None:
    """Refuse a seed that is neither a whole number nor None."""
    if value is not None and not is_whole(value):
        raise ValueError(f"seed must be a whole number or None, got {excerpt(value)}")


def new_seed(seed: int | None) -> int:
    """Return a seed as an unsigned 64-bit number; None draws one."""
    return secrets.randbits(64) if seed is None else int(seed) % 2**64


#: Values that ask for nothing: an argument with one of them is left out.
_UNSAID = (None, False)


class Representable:
    """A mixin of kernels, losses and growth policies, whose `repr` is the call that makes them.

    Examples
    --------
    >>> from streamkernel.kernels import Gaussian
    >>> Gaussian(), Gaussian(bandwidth=2.0)
    (Gaussian(), Gaussian(bandwidth=2.0))

    """

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        assert isinstance(self, base.Base)
        return call(self)


def keep_arguments(component: object, given: Mapping[str, Any]) -> None:
    """Set each argument of a constructor as an attribute of the same name.

    - component: The object under construction.
    - given: The constructor's `locals()`, before it sets any other variable.

    Examples
    --------
    >>> class Point:
    ...     def __init__(self, x, y=0.0):
    ...         keep_arguments(self, locals())
    >>> vars(Point(1.0))
    {'x': 1.0, 'y': 0.0}

    """
    vars(component).update({name: value for name, value in given.items() if name not in ("self", "__class__")})


def call(component: base.Base) -> str:
    """The call that makes a component, without arguments that are None or False.

    Examples
    --------
    >>> from river.optim.losses import Huber
    >>> call(Huber(epsilon=1.5))
    'Huber(epsilon=1.5)'

    """
    # Nested components are among the parameters as classes: the attribute has the object.
    arguments = {name: getattr(component, name, value) for name, value in component._get_params().items()}
    given = [f"{name}={_shown(value)}" for name, value in arguments.items() if not any(value is one for one in _UNSAID)]
    return f"{type(component).__name__}({', '.join(given)})"


def lines(estimator: base.Base) -> str:
    """River's representation of an estimator, an argument a line, with components as calls."""
    arguments = [f"  {name}={_shown(getattr(estimator, name))}\n" for name in estimator._get_params()]
    return f"{type(estimator).__name__} (\n{''.join(arguments)})"


def _shown(value: Any) -> str:
    return call(value) if isinstance(value, base.Base) else repr(value)
