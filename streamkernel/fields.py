"""The fields of a state, validated as they are read or written: their dtype and shape, and the range of their numbers.

What comes from a file may hold anything. No array or number of it reaches a model but through these functions.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamkernel.state import Array, State, excerpt, real, untag

#: Field name -> whether a model can continue with its numbers.
Rules = Mapping[str, Callable[[Array], bool]]


def array(state: State, name: str, dtype: Any, *shape: int | None) -> Array:
    """A copy of an array of a state, after its dtype and shape were checked.

    Compiled code does not check bounds, so no array from a checkpoint reaches it without this.

    - dtype: The dtype that the array must have.
    - shape: The length of each dimension; None is any.

    ValueError: The field is missing or is not such an array.
    """
    value = state.get(name)
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != len(shape):
        raise state_mismatch(name)
    if any(wanted is not None and n != wanted for n, wanted in zip(value.shape, shape, strict=True)):
        raise state_mismatch(name)
    return np.array(value, order="C")


def checked(state: State, rules: Rules) -> State:
    """Validate the numbers of a state against rules, and return it; fields that hold no floats are skipped.

    Writing and reading a state check the same rules: none is saved that would be refused.

    ValueError: A field, which the message names, holds a number that its rule does not allow.
    """
    for name, fits in rules.items():
        value = state.get(name)
        if isinstance(value, int):  # one past the largest float is infinite
            value = real(value)
        values = np.asarray(value) if isinstance(value, np.ndarray | float) else None
        if values is not None and values.dtype.kind == "f" and not fits(values):
            raise state_mismatch(name)
    return state


def all_finite(values: Array) -> bool:
    """Whether all values are finite."""
    return bool(np.isfinite(values).all())


def all_from_zero(values: Array) -> bool:
    """Whether all values are finite and at least 0."""
    return all_finite(values) and bool((values >= 0).all())


def all_positive(values: Array) -> bool:
    """Whether all values are finite and more than 0."""
    return all_finite(values) and bool((values > 0).all())


def within(least: float, most: float) -> Callable[[Array], bool]:
    """The rule that all values are finite, and from `least` to `most`."""
    return lambda values: all_finite(values) and bool(((values >= least) & (values <= most)).all())


def none_infinite(values: Array) -> bool:
    """Whether all values are finite, or NaN where nothing was observed."""
    return not np.isinf(values).any()


def none_missing(values: Array) -> bool:
    """Whether no value is NaN."""
    return not np.isnan(values).any()


def whole(state: State, name: str, most: int = 2**63) -> int:
    """The integer from 0 to `most` in a field of a state; ValueError where there is none."""
    value = state.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise state_mismatch(name)
    return value


def number(state: State, name: str) -> float:
    """The number in a field of a state as a float; ValueError where there is none."""
    value = state.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise state_mismatch(name)
    return real(value) or 0.0  # one past the largest float is infinite


def untagged(state: State, name: str) -> list[Any]:
    """The names or labels in a field of a state, which `tag` encoded; ValueError where there are none."""
    value = state.get(name)
    if not isinstance(value, list):
        raise state_mismatch(name)
    try:
        return [untag(item) for item in value]
    except ValueError as error:
        raise state_mismatch(name) from error


class OtherVersionError(ValueError):
    """Another version of streamkernel wrote the state."""


def check_version(state: State, known: int) -> None:
    """Refuse a state that does not have the version `known`.

    OtherVersionError: The version is older or newer.
    ValueError: The field is missing or is not an integer.
    """
    version = state.get("version")
    if type(version) is not int:
        raise state_mismatch("version")
    if version != known:
        way = "update streamkernel" if version > known else "learn the model again"
        raise OtherVersionError(f"this state has version {excerpt(version)}, this streamkernel reads {known}: {way}")


def state_mismatch(name: str) -> ValueError:
    """The ValueError of a state with a field that is missing or impossible, to be raised."""
    return ValueError(f"this state does not fit: its field {name!r} is missing or impossible")
