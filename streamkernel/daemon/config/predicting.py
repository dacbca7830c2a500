"""Mode predict in a configuration: where the model is read, what the run keeps, and the defaults of this mode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from streamkernel.daemon.config.schema import Config, CsvSinkConfig, JsonlSinkConfig

__all__ = ["conflicts_of_models", "with_mode_defaults"]


def with_mode_defaults(config: Config) -> Config:
    """Return a configuration with the defaults of mode predict in the place of what it leaves out.

    Without ``serve_from``, the model is in ``checkpoint.directory``, which is another run's, and nothing is kept. Where
    nothing is kept, each run begins at the beginning of its source, and its files replace those of the run before.
    """
    if config.mode != "predict":
        return config
    update: dict[str, Any] = {}
    if config.serve_from is None and config.checkpoint is not None:
        update = {"serve_from": config.checkpoint.directory, "checkpoint": None}
    if config.checkpoint is None or update:
        for key, output in config.outputs.items():
            if isinstance(output, CsvSinkConfig | JsonlSinkConfig) and "existing" not in output.model_fields_set:
                update[key] = output.model_copy(update={"existing": "replace"})
    return config.model_copy(update=update)


def conflicts_of_models(config: Config) -> Iterator[str]:
    """Yield a line for each setting about trained models that another one rules out, defaults of the mode filled in."""
    kept = None if config.checkpoint is None else os.path.realpath(config.checkpoint.directory)
    if config.mode == "predict":
        if config.serve_from is None:
            yield "serve_from: required in mode predict: the checkpoint directory of the run that learned"
        elif os.path.realpath(config.serve_from) == kept:
            yield "checkpoint.directory: must differ from serve_from, which is read-only: leave it out to store nothing"
        if config.initial_model is not None:
            yield "initial_model: not in mode predict, which reads its model from serve_from"
        return
    for key in ("serve_from", "reload"):
        if getattr(config, key) is not None:
            yield f"{key}: only in mode predict. A run that learns starts from a trained model with initial_model"
    if config.initial_model is not None and os.path.realpath(config.initial_model.checkpoint) == kept:
        yield "initial_model.checkpoint: must differ from checkpoint.directory, which this run continues anyway"
