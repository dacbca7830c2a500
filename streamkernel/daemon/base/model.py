"""What the daemon asks of any model: its last step, its task, and whether it is an estimator of ours."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from river import base, compose

from streamkernel.estimators.base import StreamEstimator

__all__ = ["Model", "Task", "advances", "is_binary", "is_ours", "last_step", "task_of"]

Model: TypeAlias = base.Classifier | base.Regressor | compose.Pipeline
Task: TypeAlias = Literal["classification", "regression"]


def last_step(model: base.Base) -> base.Base:
    """Return the estimator at the end of a pipeline, or the estimator itself."""
    while isinstance(model, compose.Pipeline):
        model = next(reversed(model.steps.values()))
    return model


def task_of(model: Model) -> Task:
    """Return what a model does, classification or regression.

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


def is_binary(model: Model) -> bool:
    """Return whether a model is a classifier of River's that tells true from false and knows no other label.

    Of other packages' it is not known: not all say how many classes they take.
    """
    step = last_step(model)
    binary = isinstance(step, base.Classifier) and not step._multiclass
    return binary and type(step).__module__.startswith("river.")


def is_ours(model: Any) -> bool:
    """Return whether a model is an estimator of streamkernel alone: a checkpoint holds its state, and no pickle."""
    return isinstance(model, StreamEstimator) and type(model).__module__.startswith("streamkernel.")


def advances(model: Any) -> bool:
    """Return whether a model predicts and learns whole chunks, as the estimators of streamkernel do."""
    return hasattr(model, "advance")
