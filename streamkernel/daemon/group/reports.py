"""Reports of the daemon of a partition to the member of the group that started it: one JSON value a line, in a pipe."""

from __future__ import annotations

import json
import os
import select
from typing import Any, NamedTuple

__all__ = ["Report", "ReportReader", "Reporter"]

_READ = 1 << 16
# Of what a stopped member does not read; a pipe holds as much again.
_MOST_WAITING = 1 << 16


class Report(NamedTuple):
    """What a partition reports.

    Attributes
    ----------
    kind
        ``"waiting"`` (for the directory: who holds it), ``"serving"`` (metrics: host and port), ``"reading"`` (from
        which record on), ``"saved"`` (the offset where a restart continues) or ``"failed"`` (why).
    value
        As the kind says.

    """

    kind: str
    value: Any


class Reporter:
    """The writing end of the pipe, given by its descriptor. Sending never waits: the member may be stopped.

    What it leaves unread beyond some thousands of reports is dropped; later ones say more.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting = b""
        os.set_blocking(descriptor, False)

    def send(self, kind: str, value: Any) -> None:
        """Send a report."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting += json.dumps([kind, value]).encode() + b"\n"
        self._write()

    def flush(self, seconds: float) -> None:
        """Wait until everything is sent, for some seconds at most."""
        if self._waiting and select.select([], [self._descriptor], [], seconds)[1]:
            self._write()

    def _write(self) -> None:
        try:
            while self._waiting:
                self._waiting = self._waiting[os.write(self._descriptor, self._waiting) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the member is gone, and this process ends soon, too
            self._waiting = b""


class ReportReader:
    """The reading end of the pipe, given by its descriptor; reading never waits.

    Examples
    --------
    >>> ours, theirs = os.pipe()
    >>> reader, reporter = ReportReader(ours), Reporter(theirs)
    >>> reporter.send("saved", 17)
    >>> reader.read()
    [Report(kind='saved', value=17)]
    >>> os.close(ours), os.close(theirs)
    (None, None)

    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        os.set_blocking(descriptor, False)

    def read(self) -> list[Report]:
        """Return the reports since the last time."""
        try:
            while data := os.read(self._descriptor, _READ):
                self._rest += data
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b"\n")
        return [Report(*json.loads(line)) for line in lines]
