"""The outputs of the daemon, and what happens when the disk does not take them."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connectors.ports import Sink, SinkError

__all__ = ["Backoff", "Outbox", "is_disk_trouble"]

_log = logging.getLogger(__name__)

_DISK_TROUBLE = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
# Lines the disk does not take wait in memory, as learning goes on; some tens of megabytes of them, no more.
_MOST_WAITING = 100_000


def is_disk_trouble(error: BaseException | None) -> bool:
    """Say whether an error comes from a full or failing disk, which may pass.

    Examples
    --------
    >>> is_disk_trouble(OSError(errno.ENOSPC, "No space left on device")), is_disk_trouble(OSError(errno.EPERM, ""))
    (True, False)

    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _DISK_TROUBLE:
            return True
        error = error.__cause__ or error.__context__
    return False


class Backoff:
    """Waits between tries: from 1 s, doubled each time, to 60 s.

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
    def waiting(self) -> bool:
        """Whether it is too early for the next try."""
        return self._pause > 0 and self._clock() < self._until

    def failed(self) -> float:
        """Note a failed try, and give the seconds to the next one."""
        self._pause = min(60.0, 2 * self._pause) if self._pause else 1.0
        self._until = self._clock() + self._pause
        return self._pause

    def succeeded(self) -> None:
        """Note that it went well."""
        self._pause = 0.0


class Outbox:
    """The sinks of the daemon by their key in the configuration.

    A sink keeps the lines a full disk refuses, so learning goes on; only when very many wait the daemon must hold.

    Parameters
    ----------
    sinks
        Open sinks.
    clock
        Gives seconds, and never goes back.

    """

    def __init__(self, sinks: Mapping[str, Sink], clock: Callable[[], float] = time.monotonic) -> None:
        self.sinks = dict(sinks)
        self._waiting = 0
        self._backoff = Backoff(clock)

    @property
    def full(self) -> bool:
        """Whether so many lines wait that no more may come."""
        return self._waiting >= _MOST_WAITING

    def write(self, lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Hand lines to the sinks.

        Parameters
        ----------
        lines
            By the key of the sink.

        Raises
        ------
        SinkError
            Where a sink fails for another reason than a full or failing disk.

        """
        refused = None
        for key, some in lines.items():
            if not some:
                continue
            try:
                self.sinks[key].write(some)
            except SinkError as error:
                refused = error
        if refused is not None:
            self._waiting += sum(map(len, lines.values()))
            self._bear(refused)
        else:
            self._waiting = 0

    def flush(self) -> dict[str, int | None]:
        """Make all lines durable, and give the length of each output.

        Raises
        ------
        SinkError
            Where a sink cannot.

        """
        lengths = {key: sink.flush() for key, sink in self.sinks.items()}
        self._waiting = 0
        self._backoff.succeeded()
        return lengths

    def retry(self) -> None:
        """Try again to write what waits, when it is time."""
        if self._backoff.waiting:
            return
        try:
            self.flush()
        except SinkError as error:
            self._bear(error)

    def close(self) -> None:
        """Close all sinks; what a failing disk does not take by now is beyond the last checkpoint anyway."""
        for sink in self.sinks.values():
            try:
                sink.close()
            except SinkError as error:
                _log.error("%s", error)

    def _bear(self, error: SinkError) -> None:
        if not is_disk_trouble(error):
            raise error
        if self._backoff.waiting:
            return
        pause = self._backoff.failed()
        _log.error("%s; its lines wait in memory, next try to say more in %.0f s", error, pause)
