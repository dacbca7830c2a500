"""Retries: which errors pass by themselves, and how long to wait between two tries."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from streamkernel.connectors.ports import OutageError

__all__ = ["Backoff", "may_pass"]

# A disk that is full or failing, and a pipe that nobody reads.
_PASSING_TROUBLE = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EAGAIN)


def may_pass(error: BaseException | None) -> bool:
    """Return whether an error passes: a full or failing disk, a pipe nobody reads, a broker that does not answer.

    Examples
    --------
    >>> may_pass(OSError(errno.ENOSPC, "No space left on device")), may_pass(OSError(errno.EPERM, ""))
    (True, False)

    """
    while error is not None:
        if isinstance(error, OutageError) or (isinstance(error, OSError) and error.errno in _PASSING_TROUBLE):
            return True
        error = error.__cause__ or error.__context__
    return False


class Backoff:
    """An exponential backoff between tries: from 1 s, doubled each time, to 60 s.

    Parameters
    ----------
    clock
        Gives seconds, and never goes back.

    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause = 0.0
        self._until = 0.0

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._pause > 0

    @property
    def waiting(self) -> bool:
        """Whether it is too early for the next try."""
        return self._pause > 0 and self._clock() < self._until

    def failed(self) -> float:
        """Note a failed try, and give the seconds to the next one."""
        self._pause = min(60.0, 2 * self._pause) if self._pause else 1.0
        self._until = self._clock() + self._pause
        return self._pause

    def succeeded(self) -> None:
        """Note a try that succeeded: the next pause is the shortest again."""
        self._pause = 0.0
