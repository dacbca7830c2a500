"""Builds the model that a checkpoint describes, where there is no configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.config.document import parse
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.wiring.model import build_model

__all__ = ["described_model", "with_numbers"]

# The words that stand in a header for the numbers JSON does not have.
_NUMBERS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def described_model(header: Mapping[str, Any], imports: Sequence[str] = ()) -> Model:
    """Build the model as the configuration described it that a checkpoint was written with.

    Parameters
    ----------
    header
        That of the checkpoint, checked.
    imports
        Packages that may be looked into beside ``river`` and ``streamkernel``.

    Raises
    ------
    UnfitError
        Where it cannot be built here: a package is not listed or not installed, a variable is not set.
    CheckpointError
        Where the header has no model.

    """
    steps = header["config"].get("model")
    if not isinstance(steps, list):
        raise CheckpointError("its header cannot be used: config.model: must be a list of steps")
    # JSON is YAML: the variables of the environment are put in as in a configuration.
    document = parse(json.dumps({"model": steps}, ensure_ascii=False), "the configuration in the checkpoint")
    try:
        if document.problems:
            raise ConfigError(document.problems)
        return build_model(with_numbers(document.values["model"]), imports)
    except ConfigError as error:
        lines = "; ".join(document.redact(document.as_written(line)) for line in error.lines)
        raise UnfitError(f"the model cannot be built as its configuration describes it: {lines}") from None


def with_numbers(value: Any) -> Any:
    """Return what a header has of a configuration, with numbers in the place of the words for them.

    Examples
    --------
    >>> with_numbers([{"river.linear_model.ALMAClassifier": {"B": "Infinity"}}])
    [{'river.linear_model.ALMAClassifier': {'B': inf}}]

    """
    if isinstance(value, dict):
        return {key: with_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_numbers(item) for item in value]
    return _NUMBERS.get(value, value) if isinstance(value, str) else value
