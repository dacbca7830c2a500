"""The arguments of components and estimators: attributes, and a representation like the constructor's call."""

from collections.abc import Mapping
from typing import Any

from river import base

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

    Parameters
    ----------
    component
        The object under construction.
    given
        The constructor's `locals()`, before it sets any other variable.

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
