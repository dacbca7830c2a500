"""The models of a run: one, or several with names; one of them is published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.stream.model_status import ModelStatus

__all__ = ["RestoredModel", "RunModels", "new_models"]


@dataclass(frozen=True)
class RestoredModel:
    """A model and, of a River model, its input names and target moments, as a learner keeps them; whether it learns."""

    model: Model
    inputs: str = ""
    target_moments: Moments = field(default_factory=Moments)
    learns: bool = True


@dataclass
class RunModels:
    """The models of a run.

    Attributes
    ----------
    models
        Those that are not disabled, by their names; one model has an empty name. None before a trained one is loaded.
    published
        The name of the published one.
    statuses
        What is known of each of several, by its name, in the order of the configuration; empty where there is one.
    promotions
        What was published since the first start: the records that were consumed, the model before and the one since.
    name
        The name of the published one in lines; empty where the configuration has no names.
    checkpoint
        The number of the checkpoint that a trained model is from, which lines name; None where it learns.
    origin
        Where the published one is from, as a phrase.

    """

    models: dict[str, RestoredModel]
    published: str = ""
    statuses: dict[str, ModelStatus] = field(default_factory=dict)
    promotions: list[list[Any]] = field(default_factory=list)
    name: str = ""
    checkpoint: int | None = None
    origin: str = "new"

    @property
    def main(self) -> RestoredModel:
        """The published model."""
        return self.models[self.published]


def new_models(plan: Plan) -> RunModels:
    """Return the models of a configuration before their first record."""
    models = {name: RestoredModel(model) for name, model in plan.models.items()}
    statuses = {name: ModelStatus() for name in models if name}
    return RunModels(models, plan.published, statuses, name=plan.published)
