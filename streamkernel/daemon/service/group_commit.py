"""Appends to a journal from many requests at once: those that wait share one write and one fsync."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from streamkernel.connectors.journal.lines import JournalEntry
from streamkernel.connectors.journal.writer import JournalWriter, Refusal
from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base import crash

__all__ = ["GroupCommit", "IdReusedError", "JournalError", "JournalFullError"]

_log = logging.getLogger(__name__)

_GROUP_SECONDS = 0.001  # how long the first of a group waits for others, where none wait yet
_MOST_WAITING_BYTES = 2**26
_LOG_SECONDS = 60.0


class JournalError(Exception):
    """Nothing was appended; the message says why, and it may be tried again."""


class JournalFullError(JournalError):
    """The journal has no room until the run that reads it makes some."""


class IdReusedError(JournalError):
    """An id belongs to another record, so that it does no good to try again."""


class _Waiting(NamedTuple):
    entries: Sequence[JournalEntry]
    size: int
    answer: asyncio.Future[list[bool]]
    loop: asyncio.AbstractEventLoop


class GroupCommit:
    """A thread that appends to an open journal what coroutines ask for, in groups, until it is closed.

    Attributes
    ----------
    n_groups, n_appended, n_repeated, n_refused
        Groups made durable, entries appended, repeats, and requests that were not taken.
    trouble
        Why the last group could not be written, None where it was.

    """

    def __init__(self, writer: JournalWriter) -> None:
        self._writer = writer
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._lock = threading.Lock()
        self._logged = 0.0
        self.n_groups = self.n_appended = self.n_repeated = self.n_refused = 0
        self.trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """How many bytes the journal has now."""
        return self._writer.size

    async def append(self, entries: Sequence[JournalEntry]) -> list[bool]:
        """Append entries, all or none, and wait until they are durable.

        Returns
        -------
        new
            Whether each entry is new, and not a repeat.

        Raises
        ------
        JournalFullError
            Where there is no room for them.
        IdReusedError
            Where an exact one has the id of another record.
        JournalError
            Where they could not be written.

        """
        size = sum(len(entry.record) for entry in entries)
        with self._lock:
            if self._waiting_bytes + size > max(_MOST_WAITING_BYTES, size):
                self.n_refused += 1
                raise JournalError("too many records wait for the disk")
            self._waiting_bytes += size
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[bool]] = loop.create_future()
        self._queue.put(_Waiting(entries, size, answer, loop))
        return await answer

    def close(self) -> None:
        """Append what waits, then close the journal."""
        self._queue.put(None)
        self._thread.join()
        self._writer.close()

    def _run(self) -> None:
        last = False
        while not last:
            group, last = self._next_group()
            if group:
                self._commit(group)

    def _next_group(self) -> tuple[list[_Waiting], bool]:
        """Wait for a request, and a little for others; return them, and whether they are the last."""
        first = self._queue.get()
        if first is None:
            return [], True
        group = [first]
        if self._queue.empty():
            time.sleep(_GROUP_SECONDS)
        while True:
            try:
                one = self._queue.get_nowait()
            except queue.Empty:
                return group, False
            if one is None:
                return group, True
            group.append(one)

    def _commit(self, group: Sequence[_Waiting]) -> None:
        answers: Sequence[list[bool] | JournalError]
        crash.point("journal-group")
        try:
            made = self._writer.append([one.entries for one in group])
        except OSError as error:
            self._failed(error)
            answers = [JournalError(f"the journal cannot be written: {os_reason(error)}")] * len(group)
        except Exception as error:  # whatever it is: without this thread no request would ever be answered again
            _log.exception("the journal cannot be written")
            self.trouble = f"the journal cannot be written: {type(error).__name__}"
            answers = [JournalError(self.trouble)] * len(group)
        else:
            self.trouble = None
            self.n_groups += 1
            answers = [_error_of(new) if isinstance(new, Refusal) else new for new in made]
        crash.point("journal-durable")
        with self._lock:
            self._waiting_bytes -= sum(one.size for one in group)
        for answer in answers:
            self._count(answer)
        # In one call: each of them wakes the loop.
        group[0].loop.call_soon_threadsafe(_resolve, [one.answer for one in group], answers)

    def _count(self, answer: list[bool] | JournalError) -> None:
        if isinstance(answer, JournalError):
            self.n_refused += 1
        else:
            self.n_appended += sum(answer)
            self.n_repeated += len(answer) - sum(answer)

    def _failed(self, error: OSError) -> None:
        self.trouble = f"{self._writer.folder}: the journal cannot be written: {os_reason(error)}"
        if not self._logged or time.monotonic() - self._logged > _LOG_SECONDS:
            self._logged = time.monotonic()
            _log.error("%s; requests that need it are answered with 503", self.trouble)


def _error_of(refusal: Refusal) -> JournalError:
    if refusal is Refusal.OTHER:
        return IdReusedError("another record has this id")
    return JournalFullError("the journal is full until the run that reads it saves a checkpoint")


def _resolve(futures: Sequence[asyncio.Future[list[bool]]], answers: Sequence[list[bool] | JournalError]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():  # its client is gone
            continue
        if isinstance(answer, JournalError):
            future.set_exception(answer)
        else:
            future.set_result(answer)
