"""Several models that learn one stream; one of them is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamkernel.connectors.names import hint
from streamkernel.daemon.base.model import Model, task_of
from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.config.outputs import PassingColumnsConfig
from streamkernel.daemon.config.problems import Problem, shown
from streamkernel.daemon.config.schema import Config

__all__ = ["ALL_MODELS", "PUBLISH", "SEVERAL_MODELS", "model_columns", "pipelines_of", "published_of"]


def pipelines_of(config: Config) -> dict[str, list[Any]]:
    """Return the steps of each model by its name, which is empty where there is one without."""
    return {"": config.model or []} if config.models is None else dict(config.models)


def published_of(config: Config) -> str:
    """Return the name of the model to publish: by default the first; empty where there is one without a name."""
    models = pipelines_of(config)
    return config.publish if config.publish in models else next(iter(models))


def model_columns(config: Config) -> list[str]:
    """Return the columns that lines of several models have: the name of the published one, and what others predict."""
    return [] if config.models is None else ["model", *(["models"] if _writes_all(config) else [])]


def _problems(config: Config) -> Iterator[Problem]:
    assert config.models is not None
    if config.model is not None:
        yield Problem("model", "not together with models: list it there under its own name")
    if (name := config.publish) is not None and name not in config.models:
        known = ", ".join(config.models)
        yield Problem("publish", f"must be one of {known}, got {shown(name)}{hint(name, config.models)}")


def _of_models(config: Config, models: Mapping[str, Model], published: str) -> Iterator[Problem]:  # noqa: ARG001
    task = task_of(models[published])
    for name, model in models.items():
        if (other := task_of(model)) != task:
            why = f"is for {other}, and the published one for {task}: all learn the same target"
            yield Problem(f"models.{name}", why)


def _writes_all(config: Config) -> list[str]:
    output = config.predictions
    return ["predictions.models"] if isinstance(output, PassingColumnsConfig) and output.models == "all" else []


SEVERAL_MODELS = Component(
    "several_models",
    lambda config: [] if config.models is None else ["models"],
    provides=("named_models",),
    problems=_problems,
    model_problems=_of_models,
)
PUBLISH = Component(
    "publish",
    lambda config: [] if config.publish is None else ["publish"],
    needs={"named_models": "only with models: it names the one to publish"},
)
ALL_MODELS = Component(
    "all_models",
    _writes_all,
    needs={"several_models": "all needs models; with one model there are no others"},
    excludes={"predict_mode": "must be published in mode predict: only the model named by publish predicts"},
)
