"""The models as a component of the state: one or several, each with an entry in the header and bytes in the payload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import Field, FiniteFloat, Strict, model_validator

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.mixture import experts_of, important_inputs
from streamkernel.daemon.base.model import Model, count_of, last_step
from streamkernel.daemon.base.window_refit import title_of
from streamkernel.daemon.checkpoints.payload import dump_with_digest
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
from streamkernel.daemon.run_state.run_models import StoredModels
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.processor import Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["ModelsState", "describe_model", "published_entry"]


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
        parts: list[bytes] = []
        learners: dict[str, dict[str, Any]] = {}
        challengers, published = processor.challengers, start.models.published
        for name in challengers.statuses or [published]:
            learner = processor.learner if name == published else challengers.learners.get(name)
            data, entry = b"", {}
            if learner is not None:
                try:
                    data, digest = dump_with_digest(learner.model, plan.config.imports)
                    entry = _entry(learner, digest)
                except Exception as error:  # what a class of the user's raises when it is written may be anything
                    if name == published:
                        raise
                    data = b""
                    why = str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
                    challengers.disable(name, why)
            status = challengers.statuses[name].to_json() if challengers.statuses else {}
            steps = _steps(plan, name or processor.name)
            learners[name] = {"bytes": len(data), "steps": steps, **status, **entry}
            parts.append(data)
        section = {"published": published, "promotions": start.models.promotions, "learners": learners}
        if plan.config.publish is not None:
            section["publish"] = plan.config.publish
        return Snapshot(section, b"".join(parts))

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
        if saved.header["run"]["mode"] == "predict":
            return  # the directory of another run has it
        stored = StoredModels(saved)
        consumed = saved.header["source"]["account"]["consumed"]
        start.models = stored.several(plan, consumed) if plan.published else stored.alone(plan)

    def check(self, plan: Plan, starts: Sequence[Start]) -> str | None:
        if plan.config.checkpoint is not None or not starts or not starts[0].models.models:
            return None  # what is known of a checkpoint, or of a trained model, is there already
        models = starts[0].models
        if models.name:
            names = (f"{name} ({title_of(one.model)})" for name, one in models.models.items())
            return f"models: {', '.join(names)}; {models.name} is published"
        return f"model: {title_of(models.main.model)}, {models.origin}"


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
    steps = plan.raw["models"][name] if name else plan.raw["model"]
    written = [{one: {}} if isinstance(one, str) else {key: given or {} for key, given in one.items()} for one in steps]
    return list(plain(written))
