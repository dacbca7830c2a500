"""What a configuration decides about a model, and where the models of a checkpoint and a configuration differ."""

import inspect
import types
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from river import base, compose

from streamkernel.daemon.base.errors import CheckpointError, OtherModelError
from streamkernel.estimators.base import StreamEstimator

#: Arguments that River's own classes write over when they learn, so that they say nothing about the configuration.
LEARNED_ARGUMENTS = frozenset(
    {
        "AdaBound.final_lr",
        "BaseChain.order",
        "BaseFM.intercept",
        "BaseForest.max_features",
        "BaseSRPEnsemble.training_method",
        "Beta.alpha",
        "Beta.beta",
        "HalfSpaceTrees.limits",
        "KSWIN.window",
        "StaticQuantizer.buckets",
    }
)

_MOST_ARGUMENTS = 100_000
#: Arguments of the growing estimators whose None is no value, but leaves them to the state.
LEFT_OPEN = frozenset({"block_size", "precondition", "blocks_per_step"})


def structure(model: Any, settled: bool = False) -> dict[str, Any]:
    """Return what a configuration decides about a model: classes and constructor arguments, by their paths.

    Parameters
    ----------
    model
        Any model.
    settled
        Whether what a configuration leaves open is what the model has come to, instead of None (the default).

    Raises
    ------
    CheckpointError
        It is nested deeper than any model, or in itself, or has more arguments.

    Examples
    --------
    >>> from river import linear_model, preprocessing
    >>> for path, value in structure(preprocessing.StandardScaler() | linear_model.Perceptron()).items():
    ...     print(path, value)
    model river.compose.pipeline.Pipeline
    model[0] river.preprocessing.scale.StandardScaler
    model[0].with_std True
    model[0].window_size None
    model[1] river.linear_model.perceptron.Perceptron
    model[1].l2 0.0
    model[1].clip_gradient 1000000000000.0
    model[1].initializer river.optim.initializers.Zeros

    """
    found: dict[str, Any] = {}
    # A configuration is a list of steps, also where there is one.
    begin = "model" if isinstance(model, compose.Pipeline) else "model[0]"
    for path, value in _describe(model, begin, 0, settled):
        found[path] = value
        if len(found) > _MOST_ARGUMENTS:
            raise CheckpointError(f"more than {_MOST_ARGUMENTS} arguments are too many for a model")
    return found


def _describe(value: Any, path: str, depth: int, settled: bool) -> Iterator[tuple[str, Any]]:
    if depth > 50:
        raise CheckpointError(f"{path[:100]}...: nested too deeply for a model")
    if isinstance(value, base.Base):
        yield path, full_name(type(value))
        parts = _arguments(value, settled)
    elif isinstance(value, partial):
        yield path, f"partial of {full_name(value.func)}"
        parts = [*_numbered(value.args), *_items(value.keywords)]
    elif isinstance(value, dict | list | tuple):
        yield path, f"{len(value)} entries"
        parts = list(_items(value) if isinstance(value, dict) else _numbered(value))
    elif isinstance(value, set | frozenset):
        yield path, sorted(repr(_plain(item)) for item in value)
        return
    else:
        yield path, _plain(value)
        return
    for part, item in parts:
        yield from _describe(item, path + part, depth + 1, settled)


def _items(mapping: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    return ((f".{_plain(key)!s:.99}", item) for key, item in mapping.items())


def _numbered(values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"[{index}]", item) for index, item in enumerate(values))


def _arguments(component: base.Base, settled: bool) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    if type(component).__module__.split(".")[0] not in ("river", "streamkernel"):
        return found  # whether such a class keeps its arguments as they were given is not known
    # By its type: a pipeline says that it is of the class of its last step.
    ours = settled and issubclass(type(component), StreamEstimator)
    came_to: dict[str, Any] = component.open_arguments if ours else {}  # type: ignore[attr-defined]
    for name, parameter in inspect.signature(type(component)).parameters.items():
        if any(f"{cls.__qualname__}.{name}" in LEARNED_ARGUMENTS for cls in type(component).__mro__):
            continue
        value = came_to.get(name, getattr(component, name, None))
        if parameter.kind is parameter.VAR_POSITIONAL:
            if isinstance(value, set | frozenset):
                found.append(("", value))
            else:
                found.extend(_numbered(value.values() if isinstance(value, dict) else value or ()))
        elif parameter.kind is parameter.VAR_KEYWORD:
            found.extend(_items(value or {}))
        else:
            found.append((f".{name}", value))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return full_name(value)
    return f"a {full_name(type(value))}"


def full_name(named: Any) -> str:
    """Return the module and the qualified name of something, of an object without one those of its class."""
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', type(named).__qualname__)}"


def refuse_difference(before: dict[str, Any], now: dict[str, Any], place: str = "model") -> None:
    """Refuse a checkpoint of another model than the configuration's, both as `structure` describes them.

    What a configuration leaves open is what the checkpoint's model was learned with. The place of the model in the
    configuration begins each path.

    Raises
    ------
    OtherModelError
        With each difference.

    """
    left = {path for path, value in now.items() if value is None and _is_open(path, now)}
    before = {path: None if path in left else value for path, value in before.items()}
    if found := differences(before, now, place):
        raise OtherModelError(found)


def differences(before: dict[str, Any], now: dict[str, Any], place: str = "model") -> list[str]:
    """Return where the model structures of a checkpoint and a configuration differ, a phrase for each path.

    Below a path that differs, as where there is another class, nothing more is compared.

    Examples
    --------
    >>> differences({"model[0].max_features": 512}, {"model[0].max_features": 1024})
    ['model[0].max_features: checkpoint has 512, configuration says 1024']
    >>> differences({"model[0].l2": 0.1}, {}, "models.old")
    ['models.old[0].l2: checkpoint has 0.1, not in the configuration']

    """
    found: dict[str, str] = {}
    for path in [*now, *(path for path in before if path not in now)]:
        if any(path.startswith((f"{above}.", f"{above}[")) for above in found):
            continue
        shown = place + path.removeprefix("model")
        if path not in before:
            found[path] = f"{shown}: not in the checkpoint, configuration says {now[path]!s:.200}"
        elif path not in now:
            found[path] = f"{shown}: checkpoint has {before[path]!s:.200}, not in the configuration"
        # The text as well: NaN differs from itself.
        elif before[path] != now[path] and str(before[path]) != str(now[path]):
            found[path] = f"{shown}: checkpoint has {before[path]!s:.200}, configuration says {now[path]!s:.200}"
    return list(found.values())


def _is_open(path: str, now: dict[str, Any]) -> bool:
    """Return whether a path is that of an argument that an estimator of ours leaves to the state."""
    component, _, name = path.rpartition(".")
    return name in LEFT_OPEN and str(now.get(component)).startswith("streamkernel.estimators.")
