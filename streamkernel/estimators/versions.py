"""States of earlier versions: their fields as those of now."""

from typing import Any

import numpy as np

from streamkernel.compute.moments import COUNT, LARGEST, SEEN, SIZE
from streamkernel.estimators.version_4 import from_version_4
from streamkernel.estimators.version_5 import from_version_5
from streamkernel.expansion.expansion import LARGEST_COEFFICIENT
from streamkernel.fields import array, number, state_mismatch, whole
from streamkernel.state import Array, State, excerpt

#: The version written, and those that are read.
VERSION = 7
READ = (2, 3, 4, 5, 6, 7)

#: Field of version 3 -> field of version 4.
_RENAMED = {f"rehearsal_{name}": f"warm_up_{name}" for name in ("values", "targets", "weights")}

_ADAPTIVE_NUMBERS = ("recent_targets", "window_targets", "tree_values", "levels")


def upgraded(state: State, given: dict[str, Any]) -> State:
    """A state of any version that is read, as one of now.

    Parameters
    ----------
    state
        Of a model.
    given
        The arguments of the model that is to take it: where its version had no such argument, they are the state's.

    Raises
    ------
    ValueError
        It is of another version, or a field that is to become another does not fit.

    """
    version = state.get("version")
    if type(version) is not int or version not in READ:
        known = f"{READ[0]} to {READ[-1]}"
        raise ValueError(f"this state is of version {excerpt(version)}, and this streamkernel reads versions {known}")
    if version == 2:
        state = _from_2(state)
    if version <= 3:
        state = _from_3(state)
    if version <= 4:
        state = _from_4(state, given)
    if version <= 5:
        state = _from_5(state, given)
    return _from_6(state) if version <= 6 else state


def _from_2(state: State) -> State:
    """Version 2 had moments of three numbers and no bound on targets, coefficients and steps."""
    old = dict(state)
    n = len(array(old, "input_count", np.float64, None))
    inputs = [array(old, f"input_{name}", np.float64, n) for name in ("count", "mean", "m2")]
    new = {**old, "version": 3, "input_moments": _seen(np.stack(inputs, axis=1))}
    if "target_count" in old:
        target = [float(whole(old, "target_count")), number(old, "target_mean"), number(old, "target_m2")]
        new |= {"target_moments": _seen(np.array(target)), "n_clipped_targets": 0}
    for name in ("moments", "linear_moments"):
        if name in old:
            new[name] = _seen(array(old, name, np.float64, 3))
    if "moments" in old:
        new |= {name: _cut(old, name, LARGEST) for name in _ADAPTIVE_NUMBERS}
    if "alpha" in old:
        new |= _steps_of_now(old)
    return new


def _from_3(state: State) -> State:
    """Version 3 had other names for the records of the warm-up buffer."""
    return {**{_RENAMED.get(name, name): value for name, value in state.items()}, "version": 4}


def _from_4(state: State, given: dict[str, Any]) -> State:
    """Version 4 had fewer experts in the adaptive machines, and matrices to which nothing was due."""
    return {**(from_version_4(state, given) if _is_adaptive(state, given) else state), "version": 5}


def _from_5(state: State, given: dict[str, Any]) -> State:
    """Version 5 had no stacks of the adaptive machines' experts."""
    return {**(from_version_5(state, given) if _is_adaptive(state, given) else state), "version": 6}


def _from_6(state: State) -> State:
    """Version 6 did not say of how many records the last step of a growing machine was, and let a scale be below 0."""
    new = {**state, "version": VERSION}
    if "n_grown" in state:
        new["last_batch_size"] = 0
        if (scale := number(state, "scale")) < 0:
            new |= {"scale": -scale, "alpha": -_floats(state, "alpha")}
    return new


def _is_adaptive(state: State, given: dict[str, Any]) -> bool:
    """Whether a state is of an adaptive machine, and for one: another model refuses it by its arguments."""
    return "metric_scales" in state and "metric_schedule" in given


def _steps_of_now(old: State) -> State:
    """What had diverged by its user's steps goes on from the bounds of now."""
    margin = old.get("last_margin")
    return {
        "alpha": _cut(old, "alpha", LARGEST_COEFFICIENT),
        "beta": _cut(old, "beta", LARGEST_COEFFICIENT),
        "largest_gradient": min(number(old, "largest_gradient"), LARGEST_COEFFICIENT),
        "last_margin": None if margin is None or not np.isfinite(number(old, "last_margin")) else margin,
    }


def _seen(three: Array) -> Array:
    """Count, mean and squares, (..., 3), with nothing in the block yet."""
    moments = np.zeros((*three.shape[:-1], SIZE))
    moments[..., :3] = three
    moments[..., SEEN] = three[..., COUNT]
    return moments


def _cut(state: State, name: str, most: float) -> Array:
    return np.asarray(np.clip(np.nan_to_num(_floats(state, name)), -most, most))


def _floats(state: State, name: str) -> Array:
    value = state.get(name)
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        raise state_mismatch(name)
    return value
