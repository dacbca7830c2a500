"""Appends to a journal from many requests at once: requests that wait share one transaction."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from streamkernel.connectors.journal.database import journal_reason
from streamkernel.connectors.journal.writer import JournalEntry, JournalWriter, Refusal
from streamkernel.daemon.base import crash
from streamkernel.daemon.serve.service_metrics import JournalCounters

__all__ = ["GroupCommit", "JournalError"]

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


class _Waiting(NamedTuple):
    entries: Sequence[JournalEntry]
    answer: asyncio.Future[list[bool]]
    loop: asyncio.AbstractEventLoop


class GroupCommit:
    """A thread that appends the entries of coroutines to an open journal, in groups, until it is closed.

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
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._logged: float | None = None
        self.trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    async def append(self, entries: Sequence[JournalEntry]) -> list[bool]:
        """Append all entries or none, wait until they are durable, and return whether each is new.

        Raises
        ------
        JournalError
            Where nothing was appended.

        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[bool]] = loop.create_future()
        self._queue.put(_Waiting(entries, answer, loop))
        return await answer

    def close(self) -> None:
        """Append what waits, then close the journal."""
        self._queue.put(None)
        self._thread.join()
        self._writer.close()

    def _run(self) -> None:
        last = False
        while not last:
            group = [self._queue.get()]
            while not self._queue.empty():  # no other thread takes from it
                group.append(self._queue.get())
            last = None in group
            if waiting := [one for one in group if one is not None]:
                self._commit(waiting)

    def _commit(self, group: Sequence[_Waiting]) -> None:
        crash.point("journal-group")
        answers: _Answers
        try:
            answers = self._writer.append([one.entries for one in group])
            self.trouble = None
            self._counters.groups.inc()
        except Exception as error:  # whatever it is: without this thread no request would ever be answered
            answers = [self._failed(error)] * len(group)
        crash.point("journal-durable")
        for answer in answers:
            if isinstance(answer, list):
                self._counters.accepted.inc(sum(answer))
                self._counters.repeated.inc(len(answer) - sum(answer))
            else:
                self._counters.refused.inc()
        # In one call: each call wakes the loop.
        group[0].loop.call_soon_threadsafe(_resolve, [one.answer for one in group], answers)

    def _failed(self, error: Exception) -> JournalError:
        known = isinstance(error, OSError | sqlite3.Error)
        reason = journal_reason(error) if isinstance(error, OSError | sqlite3.Error) else type(error).__name__
        self.trouble = f"{self._writer.folder}: the journal cannot be written: {reason}"
        if self._logged is None or time.monotonic() - self._logged > _LOG_SECONDS:
            self._logged = time.monotonic()
            text = "%s; requests that need it are answered with 503"
            _log.error(text, self.trouble, exc_info=None if known else error)
        return JournalError(f"the journal cannot be written: {reason}")


def _resolve(futures: Sequence[asyncio.Future[list[bool]]], answers: _Answers) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():  # its client is gone
            continue
        if isinstance(answer, list):
            future.set_result(answer)
        else:
            future.set_exception(JournalError(_REFUSED[answer], answer) if isinstance(answer, Refusal) else answer)
