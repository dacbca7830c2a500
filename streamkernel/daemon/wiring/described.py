"""Builds the model that a checkpoint describes, where there is no configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.config.document import parse
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.wiring.model import build_model

__all__ = ["described_model"]


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
        return build_model(document.values["model"], imports)
    except ConfigError as error:
        lines = "; ".join(document.redact(document.as_written(line)) for line in error.lines)
        raise UnfitError(f"the model cannot be built as its configuration describes it: {lines}") from None
