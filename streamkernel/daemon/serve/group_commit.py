"""Appends to a journal from many requests at once: requests that wait share one transaction."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from streamkernel.connectors.journal.database import journal_reason
from streamkernel.connectors.journal.writer import JournalEntry, JournalWriter, Refusal
from streamkernel.daemon.base import crash
from streamkernel.daemon.serve.service_metrics import JournalCounters

__all__ = ["GroupCommit", "JournalError", "settle"]

T = TypeVar("T")

_log = logging.getLogger(__name__)
_LOG_SECONDS = 60.0


class JournalError(Exception):
    """Nothing of a request was appended; the message says why.

    Attributes
    ----------
    refusal
        Why the journal refused the request; None where it could not be written.

    """

    def __init__(self, message: str, refusal: Refusal | None = None) -> None:
        super().__init__(message)
        self.refusal = refusal


_REFUSED = {
    Refusal.FULL: "the journal is full until the run that reads it saves a checkpoint",
    Refusal.OTHER: "another record has this id",
}
_Answers = Sequence[list[bool] | Refusal | JournalError]


class GroupCommit:
    """Appends the entries of coroutines to an open journal, in groups, by a thread of its own.

    While a group is committed, the requests that come form the next group.

    Parameters
    ----------
    writer
        The open journal.
    counters
        The counters of the journal.

    Attributes
    ----------
    trouble
        Why the last group could not be written; None where it was.

    """

    def __init__(self, writer: JournalWriter, counters: JournalCounters) -> None:
        self._writer = writer
        self._counters = counters
        self._thread = ThreadPoolExecutor(1, "journal")
        self._waiting: list[tuple[Sequence[JournalEntry], asyncio.Future[list[bool]]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._logged: float | None = None
        self.trouble: str | None = None

    async def append(self, entries: Sequence[JournalEntry]) -> list[bool]:
        """Append all entries or none, wait until they are durable, and return whether each is new.

        Raises
        ------
        JournalError
            Where nothing was appended.

        """
        answer: asyncio.Future[list[bool]] = asyncio.get_running_loop().create_future()
        self._waiting.append((entries, answer))
        if self._committing is None:
            self._committing = asyncio.create_task(self._run())
        return await answer

    def close(self) -> None:
        """Finish the group at work, then close the journal."""
        self._thread.shutdown()
        self._writer.close()

    async def _run(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting, []
                loop = asyncio.get_running_loop()
                answers = await loop.run_in_executor(self._thread, self._commit, [entries for entries, _ in group])
                for (_, future), answer in zip(group, answers, strict=True):
                    settle(future, JournalError(_REFUSED[answer], answer) if isinstance(answer, Refusal) else answer)
        finally:
            self._committing = None

    def _commit(self, group: Sequence[Sequence[JournalEntry]]) -> _Answers:
        crash.point("journal-group")
        answers: _Answers
        try:
            answers = self._writer.append(group)
            self.trouble = None
            self._counters.groups.inc()
        except Exception as error:  # whatever it is: each request gets an answer
            answers = [self._failed(error)] * len(group)
        crash.point("journal-durable")
        for answer in answers:
            if isinstance(answer, list):
                self._counters.accepted.inc(sum(answer))
                self._counters.repeated.inc(len(answer) - sum(answer))
            else:
                self._counters.refused.inc()
        return answers

    def _failed(self, error: Exception) -> JournalError:
        known = isinstance(error, OSError | sqlite3.Error)
        reason = journal_reason(error) if isinstance(error, OSError | sqlite3.Error) else type(error).__name__
        self.trouble = f"{self._writer.folder}: the journal cannot be written: {reason}"
        if self._logged is None or time.monotonic() - self._logged > _LOG_SECONDS:
            self._logged = time.monotonic()
            text = "%s; requests that need it are answered with 503"
            _log.error(text, self.trouble, exc_info=None if known else error)
        return JournalError(f"the journal cannot be written: {reason}")


def settle(future: asyncio.Future[T], answer: T | Exception) -> None:
    """Answer who waits, unless the client is gone."""
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
