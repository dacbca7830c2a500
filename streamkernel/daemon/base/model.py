"""What the daemon asks of any model: its last step, its task, and whether it is an estimator of ours."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from river import active, base, compose

from streamkernel.estimators.adaptive import AdaptiveMachineEstimator
from streamkernel.estimators.base import StreamEstimator

if TYPE_CHECKING:
    from streamkernel.estimators.density_ratio import KernelDensityRatio
    from streamkernel.estimators.growing import SeveralLearner
    from streamkernel.estimators.novelty import KernelNoveltyDetector

__all__ = [
    "OF_EACH",
    "Model",
    "Task",
    "advances",
    "count_of",
    "has_own_parts",
    "is_a",
    "is_binary",
    "is_ours",
    "lagging",
    "last_step",
    "learning_part",
    "n_lags",
    "never_learning",
    "task_of",
]

Model: TypeAlias = (
    "base.Classifier | base.Regressor | KernelNoveltyDetector | KernelDensityRatio | SeveralLearner | compose.Pipeline"
)
Task: TypeAlias = Literal[
    "classification", "regression", "novelty", "density_ratio", "several_labels", "several_numbers"
]

_KINDS: dict[type | str, Task] = {
    base.Classifier: "classification",
    base.Regressor: "regression",
    "KernelNoveltyDetector": "novelty",
    "KernelDensityRatio": "density_ratio",
    "KernelMultiLabelClassifier": "several_labels",
    "KernelMultiTargetRegressor": "several_numbers",
}

#: The task of each target, where a model has several.
OF_EACH: dict[str, Task] = {"several_labels": "classification", "several_numbers": "regression"}

_UNFIT: dict[type, str] = {
    active.base.ActiveLearningClassifier: "chooses which labels to request, and a stream brings its own: use the "
    "classifier inside it",
    base.MultiTargetRegressor: "predicts several targets: use streamkernel.KernelMultiTargetRegressor",
    base.MultiLabelClassifier: "predicts several labels: use streamkernel.KernelMultiLabelClassifier",
}

_KNOWN = frozenset({"streamkernel", "river", "numpy", "builtins"})


def last_step(model: base.Base) -> base.Base:
    """Return the estimator at the end of a pipeline, or the estimator itself."""
    while isinstance(model, compose.Pipeline):
        model = next(reversed(model.steps.values()))
    return model


def is_a(model: object, kind: type | str) -> bool:
    """Return whether a model is of a class. A class of ours may be given by name, so that it is not imported."""
    if isinstance(kind, type):
        return isinstance(model, kind)
    return any(one.__name__ == kind and one.__module__.startswith("streamkernel.") for one in type(model).__mro__)


def learning_part(model: Model) -> base.Base:
    """Return the last step, or of a `WindowRefit` the estimator within, whose arguments bound what is learned."""
    step = last_step(model)
    part: base.Base = step.model if is_a(step, "WindowRefit") else step  # type: ignore[attr-defined]
    return part


def lagging(model: base.Base) -> AdaptiveMachineEstimator | None:
    """Return a model that wants the last known targets with each record; None of any other, and of a pipeline."""
    # A pipeline is an instance of what its last step is one of.
    if isinstance(model, compose.Pipeline) or not isinstance(model, AdaptiveMachineEstimator):
        return None
    return model if model.lags else None


def n_lags(model: base.Base) -> int:
    """Return how many of the last known targets a model wants with each record; of most, none.

    Examples
    --------
    >>> import streamkernel as sk
    >>> n_lags(sk.AdaptiveKernelRegressor(lags=3)), n_lags(sk.AdaptiveKernelRegressor())
    (3, 0)

    """
    one = lagging(model)
    return 0 if one is None else int(one.lags)


def task_of(model: Model) -> Task:
    """Return what a model does: classification, regression (of one target or several), novelty detection, or a ratio.

    Raises
    ------
    TypeError
        Where it is none of these, or one whose predictions are of another kind.

    """
    step = last_step(model)
    several = is_a(step, "SeveralLearner")
    unfit = None if several else next((why for kind, why in _UNFIT.items() if isinstance(step, kind)), None)
    for kind, task in _KINDS.items():
        if is_a(step, kind) and unfit is None:
            return task
    raise TypeError(f"{type(step).__name__} {unfit or 'is not one of them'}")


def count_of(step: base.Base, name: str) -> int | None:
    """Return a count that a model keeps, as an attribute or a method; None where it has no such count.

    Examples
    --------
    >>> from river import forest, rules
    >>> count_of(forest.ARFClassifier(), "n_drifts_detected"), count_of(rules.AMRules(), "n_drifts_detected")
    (0, 0)
    >>> count_of(rules.AMRules(), "n_metric_relearnings") is None
    True

    """
    found = getattr(step, name, None)
    if inspect.ismethod(found) and not any(
        one.default is one.empty for one in inspect.signature(found).parameters.values()
    ):
        found = found()
    return int(found) if isinstance(found, int | np.integer) else None


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


def has_own_parts(model: base.Base) -> bool:
    """Return whether an estimator of ours is given a class of the user's: a kernel or a loss that may raise anything.

    Examples
    --------
    >>> import streamkernel as sk
    >>> has_own_parts(sk.KernelClassifier(kernel=sk.kernels.Gaussian()))
    False

    """
    return isinstance(model, StreamEstimator) and any(
        type(one).__module__.split(".")[0] not in _KNOWN for one in _parts(model)
    )


def never_learning(model: base.Base) -> str:
    """Return the name of a filter that keeps a novelty detector of ours from learning; empty where there is none."""
    for one in _parts(model):
        is_filter = isinstance(one, base.AnomalyFilter) and one.protect_anomaly_detector
        if is_filter and is_a(last_step(one.anomaly_detector), "KernelNoveltyDetector"):
            return type(one).__name__
    return ""


def _parts(component: Any) -> Iterator[Any]:
    """Yield a component and its arguments, with those of each of them."""
    yield component
    if isinstance(component, base.Base):
        # Some of River's name arguments that they do not keep.
        given = (getattr(component, name, None) for name in component._get_params())
        for one in component.steps.values() if isinstance(component, compose.Pipeline) else given:
            yield from _parts(one)


def advances(model: Any) -> bool:
    """Return whether a model predicts and learns whole chunks, as the estimators of streamkernel do."""
    return hasattr(model, "advance")
