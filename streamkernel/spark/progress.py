"""How far a query is learned: whether a micro-batch is one that a model has had, comes next, or must not come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["BatchOrderError", "StreamProgress"]


class BatchOrderError(RuntimeError):
    """A micro-batch cannot be learned after those that were; the message says why and what to do."""


@dataclass(frozen=True)
class StreamProgress:
    """The last micro-batch of a query that a model has learned.

    Attributes
    ----------
    query
        The id of the query, which is in Spark's checkpoint location; empty before the first micro-batch.
    batch
        The id of the micro-batch; -1 before the first.

    """

    query: str = ""
    batch: int = -1

    def is_learned(self, query: str, batch: int, has_positions: bool = False) -> bool:
        """Whether a micro-batch was learned before: Spark repeats one that it had not committed when it ended.

        Parameters
        ----------
        query, batch
            The ids of the query, empty of one that has yet to begin, and of its micro-batch.
        has_positions
            Whether positions tell which records were learned, whatever the query: then another one may continue.

        Raises
        ------
        BatchOrderError
            Micro-batches between the last one and this one were not learned by this model, or it is of another query.

        """
        if query == self.query and batch <= self.batch:
            return True
        if has_positions or (query == self.query and batch == self.batch + 1):
            return False
        if not self.query:
            if batch == 0:
                return False
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

    def to_json(self) -> dict[str, Any]:
        """Return it as the header of a checkpoint has it."""
        return {"query": self.query, "batch": self.batch}

    @classmethod
    def from_json(cls, written: Any) -> StreamProgress:
        """Return the progress that the header of a checkpoint has; none where it has nothing that can be used."""
        match written:
            case {"query": str(query), "batch": int(batch)} if type(batch) is int and batch >= 0:
                return cls(query, batch)
        return cls()
