"""Waiting until a file is written to, or one gets its name, by Linux's inotify."""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from pathlib import Path

from streamkernel.connectors.files.bytes import File

_IN_MODIFY, _IN_CLOSE_WRITE, _IN_MOVED_TO, _IN_CREATE = 0x2, 0x8, 0x80, 0x100
_MOST_EVENTS = 2**16


class Changes:
    """The changes of an open file, and of the file that has the name `path` meanwhile, since this was made.

    Without a file, `path` is a directory: files get their names there, or are closed by their writers.

    Where the system does not signal them, or has no watch left, a wait takes its whole time. So does it on a network
    file system when another machine writes: a caller has to look from time to time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "log")
    ...     path.touch()
    ...     file = File(path)
    ...     changes = Changes(path, file)
    ...     _ = path.write_text("a line")
    ...     changes.wait(1.0)
    ...     changes.close()
    ...     file.close()

    """

    def __init__(self, path: Path, file: File | None = None) -> None:
        self.file = file
        self._path = path
        self._descriptor = -1
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None)
            self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if file is None:
            self._watch(path, _IN_MOVED_TO | _IN_CLOSE_WRITE)
            return
        # The open file by its descriptor: it may have been renamed.
        self._watch(f"/proc/self/fd/{file.fileno()}", _IN_MODIFY)
        self._watch(path.absolute().parent, _IN_CREATE | _IN_MOVED_TO)
        self._watch(path, _IN_MODIFY)

    def _watch(self, path: Path | str, mask: int) -> None:
        if self._descriptor >= 0:
            self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), mask)

    def wait(self, seconds: float) -> None:
        """Wait until something changed, at most so long."""
        if self._descriptor < 0:
            time.sleep(seconds)
            return
        ready = select.poll()  # select takes only numbers below 1,024
        ready.register(self._descriptor, select.POLLIN)
        if ready.poll(1000 * seconds):
            os.read(self._descriptor, _MOST_EVENTS)  # what they are shows in the files
            if self.file is not None:
                self._watch(self._path, _IN_MODIFY)  # a new file may have the name

    def close(self) -> None:
        """Stop to watch; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
