"""Several models at the start of a run: new, or taken out of a checkpoint, which may hold others."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.base.errors import OtherModelError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.checkpoints.payload import load_model
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.recovery.stored import StoredModel, StoredModels
from streamkernel.daemon.stream.model_status import ModelStatus

__all__ = ["RestoredModel", "SeveralModels", "new_models", "restore_alone", "restore_several"]

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
class SeveralModels:
    """Several models at the start of a run.

    Attributes
    ----------
    published
        The name of the published one.
    models
        Those that are not disabled, by their names.
    statuses
        What is known of each, by its name, in the order of the configuration.
    promotions
        What was published since the first start: the records that were consumed, the model before and the one since.

    """

    published: str
    models: dict[str, RestoredModel]
    statuses: dict[str, ModelStatus]
    promotions: list[list[Any]] = field(default_factory=list)


def new_models(plan: Plan) -> SeveralModels:
    """Return the models of a configuration before their first record."""
    models = {name: RestoredModel(model) for name, model in plan.models.items()}
    return SeveralModels(plan.published, models, {name: ModelStatus() for name in models})


def restore_alone(plan: Plan, stored: StoredModels) -> RestoredModel:
    """Return the published model of a checkpoint as the only one of a configuration.

    Raises
    ------
    OtherModelError
        Where it is another one, naming each difference.

    """
    _, published = stored.named("")
    try:
        restored = _load(published, plan.model, plan)
    except OtherModelError as error:
        raise OtherModelError(error.differences, ways=_CHANGED_ALONE) from None
    dropped = [name for name in stored.models if name != stored.published]
    if dropped:
        _log.warning(
            "the model continues as %s, which was published; dropped: %s", stored.published, ", ".join(dropped)
        )
    return restored


def restore_several(plan: Plan, stored: StoredModels, header: Mapping[str, Any]) -> SeveralModels:
    """Return the models of a configuration as a checkpoint has them; those that it does not have begin here.

    The one model of a checkpoint without names continues as the one that the configuration publishes.

    Raises
    ------
    OtherModelError
        Where one of them is another one, or there is none to publish, naming each difference.

    """
    kept = stored.models if stored.published else {plan.published: stored.models[""]}
    published = stored.published or plan.published
    differences, ways = _of_published(plan, stored, header)
    restored = SeveralModels(published, {}, {}, list(header.get("promotions", [])))
    for name, model in plan.models.items():
        one = kept.get(name)
        if one is None:
            began = header["account"]["consumed"]
            _log.info("the model %s is new: it begins after record %s", name, f"{began:,}")
            restored.models[name], restored.statuses[name] = RestoredModel(model), ModelStatus(began)
            continue
        restored.statuses[name] = one.status
        if one.status.disabled:
            _log.warning("the model %s is disabled: %s", name, one.status.disabled)
            continue
        try:
            restored.models[name] = _load(one, model, plan)
        except OtherModelError as error:
            differences += [_in_models(name, difference) for difference in error.differences]
            ways = [*ways, _CHANGED] if _CHANGED not in ways else ways
    if differences:
        raise OtherModelError(differences, ways=", ".join(["change it back", *ways]))
    dropped = [name for name in kept if name not in plan.models]
    if dropped:
        _log.warning("no longer under models, and dropped at the next checkpoint: %s", ", ".join(dropped))
    return restored


def _of_published(plan: Plan, stored: StoredModels, header: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return what keeps the published model of a checkpoint from going on as that, and the ways on."""
    if not stored.published:
        return [], []
    differences, ways = [], []
    others = [name for name, one in stored.models.items() if name in plan.models and not one.status.disabled]
    if stored.published not in plan.models:
        differences.append(f"models: {stored.published}, which is published, is not in the configuration")
        ways.append(f"name it {stored.published} again")
        ways += [f"publish another one with streamkernel promote CONFIG {others[0]}"] if others else []
    wanted, before = plan.config.publish, header["config"].get("publish")
    if wanted is not None and wanted not in (before, stored.published):
        differences.append(f"publish: {stored.published} is published in the checkpoint, configuration says {wanted}")
        if wanted in others:
            ways.append(f"publish it with streamkernel promote CONFIG {wanted}")
        else:
            ways.append(f"let it learn first, with publish: {stored.published}, and then promote it")
    return differences, [*ways, "start over with --fresh"] if differences else []


def _in_models(name: str, difference: str) -> str:
    """Return a difference of a model with the place that the model has in the configuration."""
    return f"models.{name}{difference.removeprefix('model')}" if difference.startswith("model") else difference


def _load(stored: StoredModel, model: Model, plan: Plan) -> RestoredModel:
    return RestoredModel(load_model(stored.data, model, plan.config.imports), stored.inputs, stored.target_moments)
