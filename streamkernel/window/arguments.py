"""The arguments of the window solvers, and the sentences that refuse others."""

from typing import Any

import numpy as np

from streamkernel.finite import is_finite
from streamkernel.state import excerpt

__all__ = ["require_counts", "require_numbers", "require_seed"]


def require_counts(solver: Any, *names: str, least: int = 1) -> None:
    """Raise a ValueError for arguments that are not whole numbers of at least `least`."""
    for name in names:
        value = getattr(solver, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {excerpt(value)}")


def require_numbers(solver: Any, *names: str, or_zero: bool = False, or_one_of: tuple[str, ...] = ()) -> None:
    """Refuse arguments that are neither finite numbers above 0, or 0, nor one of some strings, by a ValueError."""
    for name in names:
        value = getattr(solver, name)
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        fits = number and is_finite(value) and (value > 0 or (or_zero and value == 0))
        if not fits and not (isinstance(value, str) and value in or_one_of):
            others = "".join(f'"{one}" or ' for one in or_one_of)
            least = "from 0 up" if or_zero else "above 0"
            raise ValueError(f"{name} must be {others}a finite number {least}, got {excerpt(value)}")


def require_seed(solver: Any) -> None:
    """Refuse a seed that is neither a whole number nor None, by a ValueError."""
    whole = isinstance(solver.seed, int | np.integer) and not isinstance(solver.seed, bool)
    if solver.seed is not None and not whole:
        raise ValueError(f"seed must be a whole number or None, got {excerpt(solver.seed)}")
