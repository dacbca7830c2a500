"""The models in a checkpoint: one, or several, each with a name and an entry in the header, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.payload import dump_with_digest
from streamkernel.daemon.labels.snapshot import part
from streamkernel.daemon.recovery.description import describe_model
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.model_status import ModelStatus
from streamkernel.daemon.stream.processor import Processor

__all__ = ["DumpedModels", "StoredModel", "StoredModels", "dump_models", "steps_of", "stored_models"]


@dataclass(frozen=True)
class DumpedModels:
    """The models of a run as a checkpoint has them.

    Attributes
    ----------
    payload
        What `dump_model` gives, of several models one after the other.
    digest
        That of the published model's state; None where it has none.
    entries
        Of several models, the entry of each in the header, in the order of the payload; None where there is one.

    """

    payload: bytes
    digest: str | None
    entries: dict[str, dict[str, Any]] | None = None


@dataclass(frozen=True)
class StoredModel:
    """A model as a checkpoint has it.

    Attributes
    ----------
    data
        What `dump_model` gave; empty where it is disabled.
    inputs, target_moments
        The input names and target moments of a River model, as a learner keeps them.
    status
        Of one of several, what is known of it.

    """

    data: bytes
    inputs: str = ""
    target_moments: Moments = field(default_factory=Moments)
    status: ModelStatus = field(default_factory=ModelStatus)


@dataclass(frozen=True)
class StoredModels:
    """All models of a checkpoint by their names, and what waits for labels after them.

    Attributes
    ----------
    published
        The name of the published one; empty where there is one without a name.
    models
        The models.
    waiting
        What `labels.snapshot.dump` gave.

    """

    published: str
    models: dict[str, StoredModel]
    waiting: bytes

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


def dump_models(processor: Processor, imports: Sequence[str]) -> DumpedModels:
    """Return the models of a processor as a checkpoint has them, each serialized once.

    A challenger that cannot be written is disabled.

    Raises
    ------
    CheckpointError
        Where the published one cannot be written.

    """
    challengers = processor.challengers
    payload, digest = dump_with_digest(processor.learner.model, imports)
    if challengers is None:
        return DumpedModels(payload, digest)
    parts: list[bytes] = []
    entries: dict[str, dict[str, Any]] = {}
    for name, status in challengers.statuses.items():
        data, about = b"", {}
        if name == challengers.published:
            data, about = payload, _entry(processor.learner, digest)
        elif not status.disabled:
            learner = challengers.learners[name]
            try:
                data, own = dump_with_digest(learner.model, imports)
                about = _entry(learner, own)
            except Exception as error:  # what a class of the user's raises when it is written may be anything
                data, about = b"", {}
                challengers.disable(
                    name, str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
                )
        parts.append(data)
        entries[name] = {"bytes": len(data), **status.to_json(), **about}
    return DumpedModels(b"".join(parts), digest, entries)


def _entry(learner: Learner, digest: str | None) -> dict[str, Any]:
    inputs, moments = learner.input_names, learner.target_moments
    return {
        **({"inputs": inputs} if inputs else {}),
        **({"target_moments": list(moments)} if moments.n else {}),
        "model": describe_model(learner.model, digest),
    }


def stored_models(checkpoint: Checkpoint) -> StoredModels:
    """Return the models of a checkpoint, whose header was checked, as bytes.

    Raises
    ------
    CheckpointError
        The header speaks of other bytes than there are.

    """
    header = checkpoint.header
    payload, waiting = part(checkpoint.payload, header.get("labels"))
    entries = header.get("models")
    if entries is None:
        return StoredModels("", {"": _stored(payload, header, ModelStatus())}, waiting)
    if sum(entry["bytes"] for entry in entries.values()) != len(payload):
        raise CheckpointError(f"its models do not take the {len(payload)} bytes there are")
    models, start = {}, 0
    for name, entry in entries.items():
        end = start + entry["bytes"]
        models[name] = _stored(payload[start:end], entry, ModelStatus.from_json(entry))
        start = end
    return StoredModels(header["published"], models, waiting)


def _stored(data: bytes, about: Mapping[str, Any], status: ModelStatus) -> StoredModel:
    return StoredModel(data, about.get("inputs", ""), Moments(*(about.get("target_moments") or ())), status)


def steps_of(header: Mapping[str, Any], name: str = "") -> Any:
    """Return the steps of a model as the configuration had them that wrote a checkpoint; None where they are not there.

    An empty name is that of the published model.
    """
    config = header["config"]
    if "models" not in config:
        return config.get("model")
    return config["models"].get(name or header.get("published"))
