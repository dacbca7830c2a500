"""The query that learns: Spark's own, which lets go of the model's checkpoints when it ends."""

from __future__ import annotations

from pyspark.sql.streaming import StreamingQuery

from streamkernel.spark.books import Books

__all__ = ["LearningQuery"]


class LearningQuery(StreamingQuery):  # type: ignore[misc]  # untyped where Spark is not installed
    """A streaming query that holds the checkpoint directory of its model until `stop` or `awaitTermination` is over.

    Parameters
    ----------
    query
        The query that runs.
    books
        What it has learnt.

    """

    def __init__(self, query: StreamingQuery, books: Books) -> None:
        super().__init__(query._jsq)
        self._books = books

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        """Wait for the end of the query, or for so many seconds; see `StreamingQuery.awaitTermination`."""
        try:
            ended: bool | None = super().awaitTermination(timeout)
        except BaseException:
            if not self.isActive:
                self._books.close()
            raise
        if ended is not False:
            self._books.close()
        return ended

    def stop(self) -> None:
        """Stop the query."""
        super().stop()
        self._books.close()
