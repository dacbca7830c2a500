"""The time that a process had: what it spent in line for a processor is not its own."""

import time
from pathlib import Path


class ProcessClock:
    """The time since this was made or renewed, less what a process has waited for a processor.

    What it sleeps or waits for otherwise counts. Of several threads, the one that waited longest is believed.

    Parameters
    ----------
    pid
        The process.

    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.renew()

    def renew(self) -> None:
        """Start over."""
        self._start, self._before = time.monotonic(), _in_line(self._pid)

    @property
    def seconds(self) -> float:
        """How long."""
        waited = (seconds - self._before.get(thread, 0.0) for thread, seconds in _in_line(self._pid).items())
        return time.monotonic() - self._start - max(waited, default=0.0)


def _in_line(pid: int) -> dict[str, float]:
    """The seconds that each thread has waited in line; none where this kernel does not say."""
    found = {}
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            found[path.parent.name] = int(path.read_text().split()[1]) / 1e9
        except (OSError, IndexError):
            continue
    return found
