"""The domain of a kernel: which numbers its inputs may be."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from streamkernel.state import Array, excerpt


@dataclass(frozen=True)
class Domain:
    """The values that a kernel accepts: numbers from a lower bound up.

    A missing input counts as 0, and every domain contains 0.

    Parameters
    ----------
    least
        The bound, at most 0.
    is_open
        Whether numbers must be above the bound. False (the default) also allows the bound.

    Examples
    --------
    >>> Domain(0.0).outside(np.array([-1.0, 0.0, np.nan, 2.0]))
    array([ True, False, False, False])

    """

    least: float
    is_open: bool = False

    def __post_init__(self) -> None:
        if not (self.least < 0 if self.is_open else self.least <= 0):
            raise ValueError(f"a domain must contain 0, the value of an absent input, got {self}")

    def outside(self, values: Array) -> Array:
        """Return which values are outside, bool of their shape; NaN, a missing value, is inside."""
        return np.asarray(values <= self.least if self.is_open else values < self.least)

    def refusal(self, name: Hashable, value: float) -> str:
        """Return the error message for an input's value."""
        wanted = f"{'above' if self.is_open else 'of at least'} {self.least:g}"
        return (
            f"input {excerpt(name)} is {value:g}, which the model's kernel does not accept: "
            f"use a number {wanted}, or None if it was not observed"
        )


def narrower(one: Domain | None, other: Domain | None) -> Domain | None:
    """Return the intersection of two domains; None is every number.

    Examples
    --------
    >>> narrower(Domain(-1.0, is_open=True), Domain(0.0)), narrower(None, None)
    (Domain(least=0.0, is_open=False), None)

    """
    given = [domain for domain in (one, other) if domain is not None]
    return max(given, key=lambda domain: (domain.least, domain.is_open), default=None)


def is_inside(domain: Domain | None, value: float) -> bool:
    """Return whether a number, or NaN, is in a domain."""
    return domain is None or math.isnan(value) or not domain.outside(np.array(value)).any()
