"""What is on the disk for good: files and the names in a folder, and what it means that they are not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SinkError

__all__ = ["Appended", "sync_folder"]

# What a file system answers that cannot sync a folder: it loses a name only with the whole machine.
_CANNOT = (errno.EBADF, errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)


class Appended:
    """A file whose end is made durable again and again, until that fails once.

    The system tells of a write that failed once, and takes it for done from then on: a second `fsync` would succeed,
    and write nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lost = ""

    def sync(self, descriptor: int) -> None:
        """Make what was written durable.

        Raises
        ------
        SinkError
            Where that fails, and from then on every time.

        """
        if not self._lost:
            try:
                os.fsync(descriptor)
            except OSError as error:
                self._lost = os_reason(error)
        if self._lost:
            raise SinkError(
                f"{self._path}: did not reach the disk ({self._lost}): lines since the last checkpoint may be "
                "missing. Repair the disk and start again: the run continues from that checkpoint"
            )


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where its file system can do that.

    Raises
    ------
    OSError
        Where the disk fails.

    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
