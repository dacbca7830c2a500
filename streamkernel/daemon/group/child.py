"""The process of one partition, as the member of the group sees it: started, followed by its reports, ended."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from streamkernel.daemon.group.reports import ReportReader

__all__ = ["Child"]


class Child:
    """The running process of a partition: it reads what it is given, and reports on its standard output."""

    def __init__(
        self,
        command: Sequence[str],
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.started = clock()
        self.address: tuple[str, int] | None = None  # host and port of its metrics, where it serves them
        self.holder: str | None = None  # who holds the directory it waits for
        self.reading = False  # whether it takes records
        self.saved: int | None = None  # the offset at which a restart would continue
        self.failure: str | None = None  # why it cannot continue, in its own words
        self.stop_signal: signal.Signals | None = None  # the signal sent to end it
        self.overdue = False  # whether it was killed because it was not done in time
        self._news = False
        self._deadline = 0.0
        # Ctrl-C at a terminal is for the member, which ends its children in good order. And no preexec_fn, which
        # is no good where there are threads: a child sees to it by itself that it does not outlive its parent.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it died already, and `ended` says so
            self._process.stdin.write(given)
            self._process.stdin.close()
        self._output = self._process.stdout
        self._reports = ReportReader(self._output.fileno())

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def state(self) -> str:
        """What it does, in a few words, for the status page."""
        if self.stop_signal is not None:
            return "finishing"
        if self.holder is not None:
            return f"waiting for {self.holder}"
        return "reading" if self.reading else "starting"

    def read_reports(self) -> None:
        """Read its reports since the last time, and set the attributes by them."""
        for kind, value in self._reports.read():
            if kind == "serving":
                self.address = (value[0], value[1])
            elif kind == "waiting":
                self.holder = value
            elif kind == "reading":
                self.reading, self.holder = True, None
            elif kind == "saved":
                self.saved, self._news = value, True
            elif kind == "failed":
                self.failure = value

    def newly_saved(self) -> int | None:
        """Return `saved` where it was reported since the last time, None otherwise."""
        news, self._news = self._news, False
        return self.saved if news else None

    def stop(self, seconds: float) -> None:
        """Let it finish, and kill it if it has not by then; see `ended`."""
        if self.stop_signal is None:
            self._signal(signal.SIGTERM)
            self._deadline = self._clock() + seconds

    def kill(self) -> None:
        """End it at once: what it learned since its last checkpoint is dropped."""
        if self.stop_signal is not signal.SIGKILL:
            self._signal(signal.SIGKILL)

    def ended(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        if self.stop_signal is signal.SIGTERM and self._clock() >= self._deadline:
            self.overdue = True
            self.kill()
        status = self._process.poll()
        if status is not None and not self._output.closed:
            self.read_reports()
            self._output.close()
        return status

    def _signal(self, number: signal.Signals) -> None:
        self.stop_signal = number
        self._process.send_signal(number)
