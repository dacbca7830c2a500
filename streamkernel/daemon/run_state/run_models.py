"""The models of a run: one, or several with names, new or restored from a checkpoint; one of them is published."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.base.errors import CheckpointError, OtherModelError, UnfitError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.checkpoints.payload import load_model
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import Saved
from streamkernel.daemon.stream.challengers import ModelStatus

__all__ = ["RestoredModel", "RunModels", "StoredModel", "StoredModels", "new_models"]

_log = logging.getLogger(__name__)

_CHANGED_ALONE = (
    "start over with --fresh, or list the old and the new one under models, the old one first, to compare both"
)
_CHANGED = "give a changed model a new name, so that it begins at this record, or start over with --fresh"


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


@dataclass(frozen=True)
class StoredModel:
    """A model as a checkpoint has it.

    Attributes
    ----------
    data
        What `dump_model` gave; empty where it is disabled.
    entry
        What the header says of it.

    """

    data: bytes
    entry: Mapping[str, Any]

    @property
    def steps(self) -> Any:
        """Its steps as the configuration had them; None where they are not there."""
        return self.entry.get("steps")

    @property
    def status(self) -> ModelStatus:
        """What is known of it as one of several."""
        return ModelStatus.from_json(self.entry)

    def load(self, model: Model, imports: Sequence[str], place: str = "model") -> RestoredModel:
        """Restore it into a new model of its classes and arguments; see `load_model`.

        Raises
        ------
        OtherModelError
            Where it is another model, naming each difference.
        CheckpointError
            Where what it holds is refused.

        """
        moments = Moments(*(self.entry.get("target_moments") or ()))
        return RestoredModel(load_model(self.data, model, imports, place), self.entry.get("inputs", ""), moments)


class StoredModels:
    """All models of a checkpoint by their names.

    Parameters
    ----------
    saved
        The checkpoint.

    Attributes
    ----------
    published
        The name of the published one; empty where there is one without a name.
    models
        The models.

    Raises
    ------
    CheckpointError
        The header speaks of other bytes than there are.

    """

    def __init__(self, saved: Saved) -> None:
        section, payload = saved.header["models"], saved.data.get("models", b"")
        self.section = section
        self.published: str = section["published"]
        self.models: dict[str, StoredModel] = {}
        start = 0
        for name, entry in section["learners"].items():
            self.models[name] = StoredModel(payload[start : start + entry["bytes"]], entry)
            start += entry["bytes"]
        if start != len(payload):
            raise CheckpointError(f"its models do not take the {len(payload)} bytes there are")

    def named(self, name: str) -> tuple[str, StoredModel]:
        """Return a model that is not disabled with its name, the published one where the name is empty.

        Raises
        ------
        UnfitError
            Where there is none, naming those there are.

        """
        wanted = name or self.published
        usable = [one for one, stored in self.models.items() if not stored.status.disabled]
        if wanted not in usable:
            if not self.published:
                raise UnfitError(f"holds one model without a name, and none called {name}: leave the name out")
            why = f"its model {name} is disabled" if name in self.models else f"holds no model {name}"
            raise UnfitError(f"{why}: name one of {', '.join(usable)}")
        return wanted, self.models[wanted]

    def alone(self, plan: Plan) -> RunModels:
        """Return the published model as the only one of a configuration.

        Raises
        ------
        OtherModelError
            Where it is another one, naming each difference.

        """
        try:
            restored = self.models[self.published].load(plan.model, plan.config.imports)
        except OtherModelError as error:
            raise OtherModelError(error.differences, ways=_CHANGED_ALONE) from None
        if dropped := [name for name in self.models if name != self.published]:
            _log.warning(
                "the model continues as %s, which was published; dropped: %s", self.published, ", ".join(dropped)
            )
        return RunModels({"": restored})

    def several(self, plan: Plan, consumed: int) -> RunModels:
        """Return the models of a configuration; those that the checkpoint does not have begin here.

        The one model of a checkpoint without names continues as the one that the configuration publishes.

        Raises
        ------
        OtherModelError
            Where one of them is another one, or there is none to publish, naming each difference.

        """
        kept = self.models if self.published else {plan.published: self.models[""]}
        published, promotions = self.published or plan.published, list(self.section.get("promotions", []))
        restored = RunModels({}, published, promotions=promotions, name=published)
        differences, ways = self._of_published(plan)
        for name, model in plan.models.items():
            one = kept.get(name)
            if one is None:
                _log.info("the model %s is new: it begins after record %s", name, f"{consumed:,}")
                restored.models[name], restored.statuses[name] = RestoredModel(model), ModelStatus(consumed)
                continue
            restored.statuses[name] = one.status
            if one.status.disabled:
                _log.warning("the model %s is disabled: %s", name, one.status.disabled)
                continue
            try:
                restored.models[name] = one.load(model, plan.config.imports, f"models.{name}")
            except OtherModelError as error:
                differences += error.differences
                ways = [*ways, _CHANGED] if _CHANGED not in ways else ways
        if differences:
            raise OtherModelError(differences, ways=", or ".join(["change it back", *ways]))
        if dropped := [name for name in kept if name not in plan.models]:
            _log.warning("no longer under models, and dropped at the next checkpoint: %s", ", ".join(dropped))
        return restored

    def _of_published(self, plan: Plan) -> tuple[list[str], list[str]]:
        """Return why the published model cannot continue as the published one, and the ways on."""
        if not self.published:
            return [], []
        differences, ways = [], []
        others = [name for name, one in self.models.items() if name in plan.models and not one.status.disabled]
        if self.published not in plan.models:
            differences.append(f"models: {self.published}, which is published, is not in the configuration")
            ways.append(f"name it {self.published} again")
            ways += [f"publish another one with streamkernel promote CONFIG {others[0]}"] if others else []
        wanted = plan.config.publish
        if wanted is not None and wanted not in (self.section.get("publish"), self.published):
            differences.append(f"publish: {self.published} is published in the checkpoint, configuration says {wanted}")
            if wanted in others:
                ways.append(f"publish it with streamkernel promote CONFIG {wanted}")
            elif wanted in self.models and self.models[wanted].status.disabled:
                ways.append(f"give {wanted}, which is disabled, a new name to try it again")
            else:
                ways.append(f"let it learn first, with publish: {self.published}, and then promote it")
        return differences, [*ways, "start over with --fresh"] if differences else []
