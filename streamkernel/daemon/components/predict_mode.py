"""Trained models: mode predict with its defaults and its reload, and the initial model of a run that learns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.config.outputs import FileSinkConfig
from streamkernel.daemon.config.problems import ConfigError, Problem
from streamkernel.daemon.config.schema import Config

__all__ = [
    "INITIAL_MODEL",
    "PREDICT_MODE",
    "RELOAD",
    "SERVE_FROM",
    "names_checkpoints",
    "needs_target",
    "with_mode_defaults",
    "with_served_model",
]


def needs_target(config: Config, section: str) -> bool:
    """Return whether a source must have the column of its target: records that are only predicted need none."""
    return config.mode == "learn" or section != "source"


def names_checkpoints(config: Config) -> bool:
    """Return whether lines name the checkpoint of the model that predicted: a model that learns has none."""
    return config.mode == "predict"


def with_served_model(config: Config) -> Config:
    """Return a configuration in mode predict: that of a run that learns predicts with the model of its checkpoints.

    Raises
    ------
    ConfigError
        If the run that learns has no checkpoints.

    """
    if config.mode == "predict":
        return config
    if config.checkpoint is None:
        why = "required, serve reads the model of the run that learns from its directory"
        raise ConfigError(Problem("checkpoint", why))
    # Of several models, the one that the checkpoint says is published, also after a promotion.
    alone: dict[str, Any] = {"mode": "predict", "initial_model": None, "publish": None}
    return with_mode_defaults(config.model_copy(update=alone))


def with_mode_defaults(config: Config) -> Config:
    """Return a configuration with the defaults of mode predict.

    Without ``serve_from``, the model comes from the ``checkpoint.directory`` of another run, and this run stores
    nothing. A run that stores nothing starts at the first record, and its files replace those of the run before.
    """
    if config.mode != "predict":
        return config
    update: dict[str, Any] = {}
    if config.serve_from is None and config.checkpoint is not None:
        update = {"serve_from": config.checkpoint.directory, "checkpoint": None}
    if config.checkpoint is None or update:
        for key, output in config.outputs.items():
            if isinstance(output, FileSinkConfig) and "existing" not in output.model_fields_set:
                update[key] = output.model_copy(update={"existing": "replace"})
    return config.model_copy(update=update)


def _of_mode(config: Config) -> Iterator[Problem]:
    if config.serve_from is None:
        yield Problem("serve_from", "required in mode predict: the checkpoint directory of the run that learned")
    elif _is_checkpoint_directory(config, config.serve_from):
        why = "must differ from serve_from, which is read-only: leave it out to store nothing"
        yield Problem("checkpoint.directory", why)


def _of_initial_model(config: Config) -> Iterator[Problem]:
    if config.initial_model is not None and _is_checkpoint_directory(config, config.initial_model.checkpoint):
        why = "must differ from checkpoint.directory, which this run continues anyway"
        yield Problem("initial_model.checkpoint", why)


def _is_checkpoint_directory(config: Config, path: str) -> bool:
    return config.checkpoint is not None and os.path.realpath(path) == os.path.realpath(config.checkpoint.directory)


_ONLY_THERE = {"predict_mode": "only in mode predict. A run that learns starts from a trained model with initial_model"}
PREDICT_MODE = Component(
    "predict_mode",
    lambda config: ["mode"] if config.mode == "predict" else [],
    provides=("named_models",),
    problems=_of_mode,
)
SERVE_FROM = Component(
    "serve_from", lambda config: [] if config.serve_from is None else ["serve_from"], needs=_ONLY_THERE
)
RELOAD = Component("reload", lambda config: [] if config.reload is None else ["reload"], needs=_ONLY_THERE)
INITIAL_MODEL = Component(
    "initial_model",
    lambda config: [] if config.initial_model is None else ["initial_model"],
    excludes={"predict_mode": "not in mode predict, which reads its model from serve_from"},
    problems=_of_initial_model,
)
