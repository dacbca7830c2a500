"""What the daemon asks of any model: its last step, and its task."""

from __future__ import annotations

from typing import Literal, TypeAlias

from river import base, compose

__all__ = ["Model", "Task", "last_step", "task_of"]

Model: TypeAlias = base.Classifier | base.Regressor | compose.Pipeline
Task: TypeAlias = Literal["classification", "regression"]


def last_step(model: base.Base) -> base.Base:
    """Give the estimator at the end of a pipeline, or the estimator itself."""
    while isinstance(model, compose.Pipeline):
        model = next(reversed(model.steps.values()))
    return model


def task_of(model: Model) -> Task:
    """Say what a model does.

    Raises
    ------
    TypeError
        Where it is neither a classifier nor a regressor.

    """
    step = last_step(model)
    if isinstance(step, base.Classifier):
        return "classification"
    if isinstance(step, base.Regressor):
        return "regression"
    raise TypeError(f"{type(step).__name__} is neither a classifier nor a regressor")
