"""The query that learns: Spark's own, which releases the model's checkpoints when it ends."""

from __future__ import annotations

import contextlib
import time
from typing import Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from streamkernel.spark.failures import failure_of
from streamkernel.spark.learner import BatchModel, MicroBatches
from streamkernel.spark.progress import ProgressStore

__all__ = ["LearningQuery", "check_free"]

#: Seconds between two looks at whether a query is over: one whose session was stopped does not say so.
_POLL = 1.0

#: The queries of this process that hold a store, also those that nobody else refers to.
_holding: set[LearningQuery] = set()


class LearningQuery(StreamingQuery):  # type: ignore[misc]  # untyped where Spark is not installed
    """A streaming query that holds the checkpoint directory of its model until it has ended.

    `stop` and `awaitTermination` release the directory. Otherwise the next `learn_stream` of this process does.

    Parameters
    ----------
    query
        The running query.
    progress
        The micro-batches it has learned.
    learn
        The function of its micro-batches.

    """

    def __init__(self, query: StreamingQuery, progress: ProgressStore, learn: MicroBatches) -> None:
        super().__init__(query._jsq)
        self._progress = progress
        self.learn = learn
        _holding.add(self)

    @classmethod
    def start(cls, writer: DataStreamWriter, progress: ProgressStore, learn: MicroBatches) -> Self:
        """Start a query; the store is closed where Spark refuses it."""
        try:
            return cls(writer.start(), progress, learn)
        except Exception as error:
            progress.close()
            raise failure_of(error) from error

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Wait for the end of the query, or for `timeout` seconds.

        Parameters
        ----------
        timeout
            How long to wait. None (the default): until the end.

        Returns
        -------
        Whether it has ended; None without a timeout.

        Raises
        ------
        Exception
            What ended the query, with one sentence as its message; Spark's own exception is its cause.

        """
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}")
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._has_ended(_POLL if end is None else min(_POLL, end - time.monotonic())):
                if end is not None and time.monotonic() >= end:
                    return False
        except (PySparkException, Py4JError, OSError) as error:
            raise (self.learn.failure or failure_of(error)) from error
        finally:
            self.let_go()
        return None if timeout is None else True

    def stop(self) -> None:
        """Stop the query; one that has ended, with its session or by itself, is left as it is."""
        try:
            super().stop()
        except (PySparkException, Py4JError, OSError) as error:
            if not self._is_over():
                raise failure_of(error) from error
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Close the store, if the query has ended."""
        if self not in _holding or not self._is_over():
            return
        _holding.discard(self)
        self._progress.close()
        with contextlib.suppress(PySparkException, Py4JError, OSError):
            super().stop()  # one that waits for data continues to look for it without its session

    def _has_ended(self, seconds: float) -> bool:
        """Wait so long; raise what ended the query."""
        if super().awaitTermination(max(seconds, 0.001)):
            return True
        if not self._is_over():
            return False
        if (error := self.exception()) is not None:
            raise error
        return True

    def _is_over(self) -> bool:
        try:
            return not self.isActive or self._jsq.sparkSession().sparkContext().isStopped()
        except (Py4JError, OSError):  # Java's process has ended, and the query with it
            return True


def check_free(model: BatchModel) -> None:
    """Close the stores of ended queries; raise a ValueError for a model that a running one may still set back."""
    for query in list(_holding):
        query.let_go()
    for query in _holding:
        if query.learn.model is model:
            raise ValueError(
                f"the model is in use by the query {query.name or query.id}, which still runs: stop it, or "
                "give each its own model"
            )
