"""The models of a run: one, or several with names; one of them is published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.stream.challengers import ModelStatus

__all__ = ["RestoredModel", "RunModels", "new_models"]


@dataclass(frozen=True)
class RestoredModel:
    """A model and, of a River model, its input names and target moments, as a learner keeps them."""

    model: Model
    inputs: str = ""
    target_moments: Moments = field(default_factory=Moments)


@dataclass
class RunModels:
    """The models of a run.

    Attributes
    ----------
    models
        Those that are not disabled, by their names; one model has an empty name.
    published
        The name of the published one.
    statuses
        What is known of each of several, by its name, in the order of the configuration; empty where there is one.
    promotions
        What was published since the first start: the records that were consumed, the model before and the one since.

    """

    models: dict[str, RestoredModel]
    published: str = ""
    statuses: dict[str, ModelStatus] = field(default_factory=dict)
    promotions: list[list[Any]] = field(default_factory=list)

    @property
    def main(self) -> RestoredModel:
        """The published model."""
        return self.models[self.published]


def new_models(plan: Plan) -> RunModels:
    """Return the models of a configuration before their first record."""
    if not plan.models or plan.config.mode == "predict":
        return RunModels({"": RestoredModel(plan.model)})
    models = {name: RestoredModel(model) for name, model in plan.models.items()}
    return RunModels(models, plan.published, {name: ModelStatus() for name in models})
