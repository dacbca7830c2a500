"""What a model has learned of a query: in memory, or with the model in a checkpoint of the daemon's format."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary

from streamkernel.arguments import lines
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import DaemonError, UnfitError
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.payload import dump_with_digest, load_model
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.run_state.component import Snapshot
from streamkernel.daemon.run_state.header import encode, open_checkpoint
from streamkernel.daemon.run_state.models import describe_model
from streamkernel.daemon.run_state.run import check_versions, run_section
from streamkernel.daemon.run_state.run_models import StoredModels
from streamkernel.estimators.base import StreamEstimator
from streamkernel.spark.partials import Partials

__all__ = ["BatchOrderError", "CheckpointProgress", "MemoryProgress", "ProgressStore", "StreamProgress"]


class BatchOrderError(DaemonError):
    """A micro-batch cannot follow the learned ones; the message says why and what to do."""


@dataclass(frozen=True)
class StreamProgress:
    """The last micro-batch of a query that a model has learned.

    Attributes
    ----------
    query
        The id of the query in Spark's checkpoint location; empty before the first micro-batch.
    batch
        The id of the micro-batch; -1 before the first.

    """

    query: str = ""
    batch: int = -1

    def is_learned(self, query: str, batch: int, has_positions: bool = False) -> bool:
        """Return whether the model has learned a micro-batch: Spark repeats one that it had not committed.

        Parameters
        ----------
        query, batch
            The ids of the query, empty before its first start, and of its micro-batch.
        has_positions
            Whether positions say which records were learned: then another query may continue.

        Raises
        ------
        BatchOrderError
            The model has not learned the micro-batch before this one, or it is from another query.

        """
        if query == self.query and batch <= self.batch:
            return True
        if has_positions or (batch == 0 if not self.query else (query, batch) == (self.query, self.batch + 1)):
            return False
        if not self.query:
            raise BatchOrderError(
                f"Spark's checkpoint location continues with micro-batch {batch}, and this model has learned none of "
                "the earlier ones: restore the checkpoint of the model, or use a new checkpoint location"
            )
        if query == self.query:
            raise BatchOrderError(
                f"micro-batch {batch} does not follow {self.batch}, the last one that the model's checkpoint has "
                "learned: the ones between would be lost. Restore the checkpoint that was written after micro-batch "
                f"{batch - 1}, or start over"
            )
        other = f"from the query {query}" if query else "new"
        raise BatchOrderError(
            f"the model has learned micro-batch {self.batch} of the query {self.query}, and Spark's checkpoint "
            f"location is {other}: the records of that query would be learned twice. Restore its checkpoint "
            "location, or start with a new model"
        )

    @classmethod
    def from_json(cls, written: Any) -> StreamProgress:
        """Return the progress in the header of a checkpoint; none where it cannot be used."""
        match written:
            case {"query": str(query), "batch": int(batch)} if type(batch) is int and batch >= 0:
                return cls(query, batch)
        return cls()


class ProgressStore(Protocol):
    """What a model has learned of a query."""

    def is_learned(self, query: str, batch: int) -> bool:
        """Return whether the model has learned a micro-batch; see `StreamProgress`."""

    def enter(self, progress: StreamProgress, model: StreamEstimator, partials: Partials) -> None:
        """Store durably that the model, in its present state, has learned a micro-batch."""

    def close(self) -> None:
        """Release what is held."""


class MemoryProgress:
    """A ProgressStore that ends with the process, or with the model.

    Parameters
    ----------
    model
        The model; a later store continues with what this very object has learned.

    """

    #: By model and query; not part of the model's state, which is copied.
    _of_models: ClassVar[WeakKeyDictionary[StreamEstimator, dict[str, StreamProgress]]] = WeakKeyDictionary()

    def __init__(self, model: StreamEstimator) -> None:
        self._learned = self._of_models.setdefault(model, {})

    def is_learned(self, query: str, batch: int) -> bool:
        return self._learned.get(query, StreamProgress()).is_learned(query, batch)

    def enter(self, progress: StreamProgress, model: StreamEstimator, partials: Partials) -> None:  # noqa: ARG002 - not kept
        self._learned[progress.query] = progress

    def close(self) -> None:
        """Nothing is held."""


class CheckpointProgress:
    """A ProgressStore in a directory of checkpoints, each with a model and the last micro-batch it learned.

    Parameters
    ----------
    directory
        The directory of one query; a lock keeps other processes of the same machine out.
    model
        The model as its owner made it; it takes the state of the newest checkpoint.
    keep
        How many checkpoints stay. Defaults to 3.

    Raises
    ------
    CheckpointError, OSError
        The directory is in use, or its checkpoints cannot be used.

    """

    def __init__(self, directory: Path, model: StreamEstimator, keep: int = 3) -> None:
        self.progress = StreamProgress()
        self._counts = RecordCounts()
        self._model = model
        self._store = CheckpointStore(directory, keep)
        self._store.lock()
        try:
            if self._store.restore(self._restore, remedy="restore a valid one, or name another directory") is None:
                self._write(model)  # a random seed must survive a kill
        except BaseException:
            self.close()
            raise

    def _restore(self, checkpoint: Checkpoint) -> bool:
        saved = open_checkpoint(checkpoint)
        check_versions(saved.header, "name another directory")
        stored = StoredModels(saved)
        if stored.published or saved.header.get("labels"):
            raise UnfitError(
                "holds several models or late labels, which this job does not support: name another directory"
            )
        self._model.__setstate__(load_model(stored.models[""].data, self._model.clone()).__getstate__())
        self._counts = RecordCounts(**saved.header["source"]["account"])
        self.progress = StreamProgress.from_json(saved.header.get("spark"))
        return True

    def is_learned(self, query: str, batch: int) -> bool:
        return self.progress.is_learned(query, batch)

    def enter(self, progress: StreamProgress, model: StreamEstimator, partials: Partials) -> None:
        sums = partials.sums
        self._counts.add(RecordCounts(sums.n, sums.n, sums.n_learned, sums.n - sums.n_learned))
        self.progress = progress
        self._write(model)

    def _write(self, model: StreamEstimator) -> None:
        data, digest = dump_with_digest(model)
        steps, about = [{type(model).__name__: lines(model)}], describe_model(model, digest)  # type: ignore[arg-type]
        learner = {"bytes": len(data), "steps": steps, "model": about}
        counted = {"account": self._counts.to_json(), "recent_dead": [], "positions": []}
        snapshots = {
            "run": Snapshot(run_section()),
            "source": Snapshot({"config": {"kind": "spark"}, **counted}),
            "outputs": Snapshot({}),
            "models": Snapshot({"published": "", "learners": {"": learner}}, data),
        }
        if self.progress.query:
            snapshots["spark"] = Snapshot(asdict(self.progress))
        self._store.write(*encode(snapshots))

    def close(self) -> None:
        self._store.close()
