"""Stores what a model has learned of a query, with the model, in a checkpoint of the daemon's format."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import UnfitError
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.payload import dump_with_digest, load_model
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.run_state.component import Snapshot
from streamkernel.daemon.run_state.header import encode, open_checkpoint
from streamkernel.daemon.run_state.models import StoredModels, describe_model
from streamkernel.daemon.run_state.run import check_versions, run_section
from streamkernel.estimators.base import StreamEstimator
from streamkernel.representation import lines
from streamkernel.spark.partials import Partials
from streamkernel.spark.progress import StreamProgress

__all__ = ["CheckpointProgress", "MemoryProgress", "ProgressStore"]

#: What each model has learned in this process without a checkpoint, by query: not of its state, which is copied.
_learned: WeakKeyDictionary[StreamEstimator, dict[str, StreamProgress]] = WeakKeyDictionary()


class ProgressStore(Protocol):
    """What a model has learned of a query."""

    def is_learned(self, query: str, batch: int) -> bool:
        """Whether a micro-batch was learned before; BatchOrderError where it must not come, see `StreamProgress`."""

    def enter(self, progress: StreamProgress, model: StreamEstimator, partials: Partials) -> None:
        """Make it durable that a micro-batch was learned, with the model as it is by now."""

    def close(self) -> None:
        """Let go of what is held."""


class MemoryProgress:
    """ProgressStore that end with the process, or with the model.

    Parameters
    ----------
    model
        The model; a store that is opened later continues with what this very object has learned.

    """

    def __init__(self, model: StreamEstimator) -> None:
        self._learned = _learned.setdefault(model, {})

    def is_learned(self, query: str, batch: int) -> bool:
        return self._learned.get(query, StreamProgress()).is_learned(query, batch)

    def enter(self, progress: StreamProgress, model: StreamEstimator, partials: Partials) -> None:  # noqa: ARG002 - not kept
        self._learned[progress.query] = progress

    def close(self) -> None:
        """Nothing is held."""


class CheckpointProgress:
    """ProgressStore in a directory of checkpoints, each of a model with the micro-batch that it learned last.

    Parameters
    ----------
    directory
        For one query alone; a lock keeps any other out, on the same machine.
    model
        The model as its owner made it: it continues with the state of the newest checkpoint, where there is one.
    keep
        How many checkpoints stay. Defaults to 3.

    Raises
    ------
    CheckpointError, OSError
        The directory is in use, or what is in it cannot be used.

    """

    def __init__(self, directory: Path, model: StreamEstimator, keep: int = 3) -> None:
        self.progress = StreamProgress()
        self._counts = RecordCounts()
        self._model = model
        self._store = CheckpointStore(directory, keep)
        self._store.lock()
        try:
            if self._store.restore(self._restore, remedy="restore a valid one, or name another directory") is None:
                self._write(model, self._counts, self.progress)  # a seed that was drawn must survive a kill
        except BaseException:
            self._store.close()
            raise

    def _restore(self, checkpoint: Checkpoint) -> bool:
        saved = open_checkpoint(checkpoint)
        check_versions(saved.header, "name another directory")
        stored = StoredModels(saved)
        if stored.published or saved.header.get("labels"):
            raise UnfitError(
                "holds several models or late labels, which this job does not support: name another directory"
            )
        restored = load_model(stored.models[""].data, self._model.clone())
        self._model.__setstate__(restored.__getstate__())
        self._counts = RecordCounts(**saved.header["source"]["account"])
        self.progress = StreamProgress.from_json(saved.header.get("spark"))
        return True

    def is_learned(self, query: str, batch: int) -> bool:
        return self.progress.is_learned(query, batch)

    def enter(self, progress: StreamProgress, model: StreamEstimator, partials: Partials) -> None:
        sums = partials.sums
        learned = RecordCounts(sums.n, sums.n, sums.n_learned, sums.n - sums.n_learned)
        counts = RecordCounts(**self._counts.to_json())
        counts.add(learned)
        self._write(model, counts, progress)
        self._counts, self.progress = counts, progress

    def _write(self, model: StreamEstimator, counts: RecordCounts, progress: StreamProgress) -> None:
        data, digest = dump_with_digest(model)
        steps, about = [{type(model).__name__: lines(model)}], describe_model(model, digest)  # type: ignore[arg-type]
        learner = {"bytes": len(data), "steps": steps, "model": about}
        counted = {"account": counts.to_json(), "recent_dead": [], "positions": []}
        snapshots = {
            "run": Snapshot(run_section()),
            "source": Snapshot({"config": {"kind": "spark"}, **counted}),
            "outputs": Snapshot({}),
            "models": Snapshot({"published": "", "learners": {"": learner}}, data),
        }
        if progress.query:
            snapshots["spark"] = Snapshot(progress.to_json())
        self._store.write(*encode(snapshots))

    def close(self) -> None:
        self._store.close()
