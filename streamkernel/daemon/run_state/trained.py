"""A trained model from the checkpoint of another run: the model alone, without positions, counters and marks."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from streamkernel.daemon.base.errors import UnfitError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.reader import CheckpointReader
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.header import open_checkpoint
from streamkernel.daemon.run_state.outputs import is_marked
from streamkernel.daemon.run_state.run import check_versions
from streamkernel.daemon.run_state.run_models import RestoredModel, RunModels, StoredModels
from streamkernel.daemon.stream.known_inputs import KnownInputs

__all__ = ["TrainedModel", "initial_model", "load_trained", "trained_models"]


@dataclass(frozen=True)
class TrainedModel:
    """A trained model, and what its checkpoint says of it.

    Attributes
    ----------
    restored
        The model as a learner takes it that only predicts.
    checkpoint
        The number of its checkpoint, which the lines of predictions name.
    records
        How many records the run that wrote it has learned, those of its warm start with them.
    written
        When the checkpoint was written, in seconds since 1970.
    label_key
        The field by which the run that learned joined late labels: no input of the model; None where there was none.
    outputs
        What the checkpoint says of the outputs of the run that learned.
    name
        Its name, where its checkpoint holds several; else empty.

    """

    restored: RestoredModel
    checkpoint: int
    records: int
    written: float
    label_key: str | None
    outputs: Mapping[str, Mapping[str, Any]]
    name: str = ""

    @property
    def model(self) -> Model:
        """The model."""
        return self.restored.model

    def models(self, plan: Plan) -> RunModels:
        """Return the models of a run that predicts with it: itself, by its name where the configuration has names."""
        name = (self.name or plan.published) if plan.published else ""
        return RunModels({"": self.restored}, name=name, checkpoint=self.checkpoint, origin=self.describe())

    def describe(self) -> str:
        """Return a phrase that names it, such as ``"checkpoint 42, 12,000 records learned"``."""
        which = f", model {self.name}" if self.name else ""
        return f"checkpoint {self.checkpoint}{which}, {self.records:,} records learned"

    def known_inputs(self) -> KnownInputs | None:
        """Return the inputs that were learned; None where they cannot be known."""
        return KnownInputs.of(self.model, self.restored.inputs)

    def writes_to(self, path: str) -> bool:
        """Return whether the run that learned continues in a file, by its checkpoint."""
        return any(is_marked(path, output) for output in self.outputs.values())

    def holds(self, transactional_id: str) -> bool:
        """Return whether the run which learned writes to a topic by a transactional id."""
        marks = (output.get("mark") for output in self.outputs.values())
        return any(isinstance(mark, Mapping) and mark.get("transactional_id") == transactional_id for mark in marks)


def load_trained(
    checkpoint: Checkpoint, model_from_config: Model, imports: Sequence[str] = (), name: str = ""
) -> TrainedModel:
    """Return the model of a checkpoint.

    Parameters
    ----------
    checkpoint
        Of a run in mode learn.
    model_from_config
        A new model of the same classes and arguments; it stays new.
    imports
        Packages whose classes may be restored in addition to River's and ours.
    name
        Which of several models; empty: the published one.

    Raises
    ------
    UnfitError
        The checkpoint is sound and cannot be used: another model, other versions, or a run in mode predict wrote it.
    CheckpointError
        What it holds is refused.

    """
    saved = open_checkpoint(checkpoint)
    header = saved.header
    if header["run"]["mode"] == "predict":
        raise UnfitError("belongs to a run in mode predict: name the checkpoint directory of the run that learned")
    check_versions(header, "train the model again")
    name, stored = StoredModels(saved).named(name)
    restored = stored.load(copy.deepcopy(model_from_config), imports)
    labels, counted = header.get("labels"), [header["source"], header.get("warm_start")]
    return TrainedModel(
        replace(restored, learns=False),
        checkpoint.number,
        sum(section["account"]["learned"] for section in counted if section is not None),
        header["run"]["written"],
        None if labels is None else labels["config"]["key"],
        header["outputs"],
        name,
    )


def initial_model(plan: Plan, path: str) -> TrainedModel:
    """Return the newest trained model at a path; it begins as the published one, whatever it was called."""
    return CheckpointReader(Path(path), lambda one: load_trained(one, plan.model, plan.config.imports)).newest()


def trained_models(plan: Plan, path: str | None = None) -> CheckpointReader[TrainedModel]:
    """Return the reader of the trained models of mode predict, by default from where the configuration says."""
    return CheckpointReader(Path(path or plan.config.serve_from or ""), partial(_load_for, plan))


def _load_for(plan: Plan, checkpoint: Checkpoint) -> TrainedModel:
    name = plan.config.publish or ""
    published = open_checkpoint(checkpoint).header["models"]["published"]
    model = plan.models.get(name or published, plan.model)
    if plan.published and published and (name or published) not in plan.models:
        raise UnfitError(
            f"{published} is published there, and not under models: list it. In mode predict, publish may name "
            "another model"
        )
    return load_trained(checkpoint, model, plan.config.imports, name if published else "")
