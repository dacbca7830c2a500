"""The models as a component of the state: one or several, each with an entry in the header and bytes in the payload."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import Field, FiniteFloat, Strict, model_validator

from streamkernel.daemon.base.errors import CheckpointError, OtherModelError, UnfitError
from streamkernel.daemon.base.mixture import experts_of, important_inputs
from streamkernel.daemon.base.model import Model, count_of, last_step
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.checkpoints.payload import dump_with_digest, load_model
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import (
    Count,
    InputNames,
    Saved,
    Snapshot,
    StateComponent,
    StateSection,
    TargetMoments,
    plain,
)
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.model_status import ModelStatus
from streamkernel.daemon.stream.processor import Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = [
    "ModelsState",
    "RestoredModel",
    "RunModels",
    "StoredModel",
    "StoredModels",
    "describe_model",
    "new_models",
    "published_entry",
]

_log = logging.getLogger(__name__)

_CHANGED_ALONE = (
    "start over with --fresh, or list the old and the new one under models, the old one first, to compare both"
)
_CHANGED = "give a changed model a new name, so that it begins at this record, or start over with --fresh"


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
        restored = RunModels({}, self.published or plan.published, promotions=list(self.section.get("promotions", [])))
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
            raise OtherModelError(differences, ways=", ".join(["change it back", *ways]))
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
            else:
                ways.append(f"let it learn first, with publish: {self.published}, and then promote it")
        return differences, [*ways, "start over with --fresh"] if differences else []


class _About(StateSection):
    state_digest: str = ""
    expert_weights: dict[str, FiniteFloat] = Field(default_factory=dict)
    input_importance: dict[str, FiniteFloat] = Field(default_factory=dict)


class _LearnerSection(StateSection):
    bytes: Count
    steps: list[Any] | None = None
    began: Count = 0
    shown: Count = 0
    recent_refused: list[Count] = Field(default_factory=list)
    disabled: str = ""
    inputs: InputNames = ""
    target_moments: TargetMoments | None = None
    model: _About | None = None


_Promotion: TypeAlias = Annotated[tuple[Count, str, str], Strict(False)]


class _ModelsSection(StateSection):
    published: str
    publish: str | None = None
    promotions: list[_Promotion] = Field(default_factory=list)
    learners: dict[str, _LearnerSection]

    @model_validator(mode="after")
    def _one_is_published(self) -> Self:
        published = self.learners.get(self.published)
        if published is None or published.disabled:
            raise ValueError("published: must be one of its models that is not disabled")
        return self


class ModelsState(StateComponent):
    """The models, each serialized once, also for its digest; those of mode predict are read elsewhere."""

    name = "models"
    section = _ModelsSection

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot:
        """See `StateComponent`; a challenger that cannot be written is disabled.

        Raises
        ------
        CheckpointError
            Where the published one cannot be written.

        """
        data = {"": b""}
        learners: dict[str, dict[str, Any]] = {}
        challengers, published = processor.challengers, start.models.published
        for name in challengers.statuses or [published]:
            learner = processor.learner if name == published else challengers.learners.get(name)
            entry: dict[str, Any] = {}
            data[name] = b""
            if learner:
                try:
                    data[name], digest = dump_with_digest(learner.model, plan.config.imports)
                    entry = _entry(learner, digest)
                except Exception as error:  # what a class of the user's raises when it is written may be anything
                    if name == published:
                        raise
                    why = str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
                    challengers.disable(name, why)
            status = challengers.statuses[name].to_json() if challengers.statuses else {}
            steps = _steps(plan, name or processor.name)
            learners[name] = {"bytes": len(data[name]), "steps": steps, **status, **entry}
        section = {"published": published, "promotions": start.models.promotions, "learners": learners}
        if plan.config.publish is not None:
            section["publish"] = plan.config.publish
        return Snapshot(section, b"".join(data[name] for name in learners))

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
        if plan.config.mode == "predict":
            return
        stored = StoredModels(saved)
        consumed = saved.header["source"]["account"]["consumed"]
        start.models = stored.several(plan, consumed) if plan.models else stored.alone(plan)


def _entry(learner: Learner, digest: str | None) -> dict[str, Any]:
    inputs, moments = learner.input_names, learner.target_moments
    return {
        **({"inputs": inputs} if inputs else {}),
        **({"target_moments": list(moments)} if moments.n else {}),
        "model": describe_model(learner.model, digest),
    }


def published_entry(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a checked header tells about the published model; see `describe_model`."""
    models = header["models"]
    return dict(models["learners"][models["published"]].get("model") or {})


def describe_model(model: Model, digest: str | None) -> dict[str, Any]:
    """Return the class of a model, how far it has grown, the shares of its mixture, and the digest of its state."""
    step = last_step(model)
    about: dict[str, Any] = {"class": f"{type(step).__module__}.{type(step).__qualname__}"}
    for name in ("n_records", "n_features", "n_blocks", "n_grown", "n_reused", "n_refits"):
        if (count := count_of(step, name)) is not None:
            about[name] = count
    mixture = {"expert_weights": experts_of(model), "input_importance": important_inputs(model, exact=True)}
    about |= {name: shares for name, shares in mixture.items() if shares}
    if digest is not None:
        about["state_digest"] = digest
    return about


def _steps(plan: Plan, name: str) -> list[Any]:
    """Return the steps of a model as the configuration has them, `name` and `name: null` written as `name: {}`."""
    steps = plan.raw["models"][name] if plan.models else plan.raw["model"]
    written = [{one: {}} if isinstance(one, str) else {key: given or {} for key, given in one.items()} for one in steps]
    return list(plain(written))
