"""Writing to a pipe whose reader may be slow, or not read at all."""

from __future__ import annotations

import errno
import os
import select
import stat

__all__ = ["write_to_pipe"]

# How long a reader may take for a page before what is for it waits elsewhere. A stop tries several times, and must be
# over in ten seconds.
_PATIENCE_MILLISECONDS = 300


def write_to_pipe(descriptor: int, data: bytes) -> int:
    """Write to a descriptor of whatever kind, without being held up by who reads it.

    Returns
    -------
    taken
        How many bytes were taken, fewer than all where the reader is too slow.

    Raises
    ------
    BlockingIOError
        When a pipe takes nothing for a while.
    OSError
        When the system refuses.

    """
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.write(descriptor, data)
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    taken = 0
    while taken < len(data):
        if not poll.poll(_PATIENCE_MILLISECONDS):
            if taken:
                break
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        try:
            # A pipe that is ready takes this much at once; more could have to wait.
            taken += os.write(descriptor, data[taken : taken + select.PIPE_BUF])
        except OSError:
            if taken:
                break  # the next call meets it again
            raise
    return taken
