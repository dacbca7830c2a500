"""Writing to a pipe whose reader may be slow, or not read at all."""

from __future__ import annotations

import errno
import os
import select
import stat

# How long a reader may take for a page before what is for it waits elsewhere. A stop tries several times, and must be
# over in ten seconds.
PATIENCE_MILLISECONDS = 300


def write_to_pipe(descriptor: int, data: bytes, patience: int = PATIENCE_MILLISECONDS) -> int:
    """Write to a descriptor of whatever kind, without being held up by who reads it; return how many bytes it took.

    Fewer than all where the reader is too slow; BlockingIOError where a pipe takes nothing for so many milliseconds,
    and any OSError of the system.
    """
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.write(descriptor, data)
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    taken = 0
    try:
        while taken < len(data):
            if not poll.poll(patience):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            # A pipe that is ready takes this much at once; more could have to wait.
            taken += os.write(descriptor, data[taken : taken + select.PIPE_BUF])
    except OSError:
        if not taken:
            raise
        # The next call meets it again.
    return taken
