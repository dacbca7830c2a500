"""Builds the model that the header of a checkpoint describes, without a configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.assembly.names import HOME
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.config.document import document_of
from streamkernel.daemon.config.problems import ConfigError

__all__ = ["as_in_yaml", "load_described"]

T = TypeVar("T")

# The header is JSON, and a configuration is YAML: words of the header for keys and numbers of YAML.
_KEYS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def load_described(steps: Any, imports: Sequence[str], load: Callable[[Model], T]) -> T:
    """Build the model that a checkpoint describes, and load the checkpoint into it.

    Parameters
    ----------
    steps
        The steps of the model as the header has them.
    imports
        Packages that the model may name in addition to ``river`` and ``streamkernel``.
    load
        Loads the checkpoint into a new model; raises `UnfitError` if the checkpoint holds another one.

    Raises
    ------
    UnfitError
        If it cannot be built here: a package is not listed or not installed, or a variable is not set.
    CheckpointError
        If the header has no model.

    """
    if not isinstance(steps, list):
        raise CheckpointError("its header cannot be used: models: steps: must be a list of steps")
    try:
        return load(_built(steps, imports))
    except UnfitError:
        if (meant := as_in_yaml(steps)) == steps:
            raise
        return load(_built(meant, imports))
    except RecursionError:
        raise CheckpointError("its header cannot be used: models: steps: nested too deeply") from None


def as_in_yaml(value: Any) -> Any:
    """Return arguments as YAML had them: JSON has words for keys that are not text, for infinities and NaN.

    Examples
    --------
    >>> as_in_yaml([{"river.linear_model.ALMAClassifier": {"B": "Infinity"}}])
    [{'river.linear_model.ALMAClassifier': {'B': inf}}]

    """
    if isinstance(value, dict):
        return {_KEYS.get(key, key): as_in_yaml(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_in_yaml(one) for one in value]
    return _NUMBERS.get(value, value) if isinstance(value, str) else value


def _built(steps: Sequence[Any], imports: Sequence[str]) -> Model:
    """Build a model as a configuration describes it."""
    try:
        document = document_of({"model": steps})
    except ConfigError as error:
        raise UnfitError("; ".join(error.lines)) from None
    try:
        if document.problems:
            raise ConfigError(*document.problems)
        return build_model(document.values["model"], imports)
    except ConfigError as error:
        lines = "; ".join(str(document.as_written(problem)) for problem in error.problems)
        unlisted = set(_packages(steps)).difference(HOME, imports)
        advice = " (--imports PACKAGE)" if unlisted else ""
        raise UnfitError(f"the model cannot be built as its configuration describes it: {lines}{advice}") from None


def _packages(written: Any) -> Iterator[str]:
    """Yield the packages of the classes that steps name."""
    if isinstance(written, str) and "." in written:
        yield written.partition(".")[0]
    elif isinstance(written, Mapping):
        for key, value in written.items():
            yield from _packages(key)
            yield from _packages(value if isinstance(value, list | Mapping) else None)
    elif isinstance(written, list):
        for one in written:
            yield from _packages(one)
