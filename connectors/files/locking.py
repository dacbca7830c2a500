"""The lock on an output file, which keeps a second writer out."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from pathlib import Path

from streamkernel.connectors.ports import SinkError

_log = logging.getLogger(__name__)

# A process that was just killed lets go of its files one after the other.
_GRACE_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def lock(descriptor: int, path: Path) -> None:
    """Take the exclusive lock (flock) on an open file; the kernel gives it back when the file is closed.

    Raises SinkError where another process, or another output of this one, holds it.
    """
    deadline = time.monotonic() + _GRACE_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise SinkError(
                    f"{path}: another output writes to it ({_holder(descriptor)}): stop that one, or give this one "
                    "its own file"
                ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return _log.warning("%s: its file system has no locks: make sure that nothing else writes to it", path)
        time.sleep(_PAUSE_SECONDS)


def _holder(descriptor: int) -> str:
    """Return what process holds the lock, where the system tells: Linux lists all locks by inode."""
    inode = str(os.fstat(descriptor).st_ino)
    try:
        held = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        held = []
    for line in held:
        # 1: FLOCK  ADVISORY  WRITE 1234 00:2f:5678 0 EOF
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
            return "this process" if fields[4] == str(os.getpid()) else f"process {fields[4]}"
    return "an unknown process"
