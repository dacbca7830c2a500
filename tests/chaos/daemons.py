"""Daemons as processes: started, killed, stopped and waited for."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

_ROOT = Path(__file__).parents[2]
_SECONDS = 120
"""How long anything may take: only what hangs gets there."""

_NAP_SECONDS = 0.05

Sabotage: TypeAlias = Sequence[tuple[str, dict[str, Any]]]
"""What goes wrong inside of the process; see `tests.chaos.sabotage`."""


class Hung(AssertionError):
    """Something never came; the message says what, and how the log of the daemon ended."""


def until(holds: Callable[[], bool], what: Callable[[], str], seconds: float = _SECONDS) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise Hung(what())
        time.sleep(_NAP_SECONDS)


class Daemon:
    """One life of the daemon, made by a `Starter`."""

    def __init__(self, starter: Starter, pid: int, err: Path) -> None:
        self._starter = starter
        self._err = err
        self._status: int | None = None
        self.pid = pid
        self.killed = False

    @property
    def log(self) -> str:
        """What it said on standard error."""
        return self._err.read_text(errors="replace")

    @property
    def status(self) -> int | None:
        """How it ended, negative for a signal; None while it lives."""
        if self._status is None:
            self._status = self._starter.ask({"poll": self.pid})
        return self._status

    @property
    def memory(self) -> int:
        """Resident bytes; 0 where that is not known."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except OSError:
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def files(self) -> int:
        """How many files it has open; 0 where that is not known."""
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return 0

    def kill(self) -> None:
        """SIGKILL."""
        if self.status is None:
            self.killed = True
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def stop(self) -> int:
        """SIGTERM; gives the status."""
        if self.status is None:
            os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def freeze(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def wait(self, otherwise: str = "the daemon did not end") -> int:
        """Wait for the end; gives the status. `otherwise` is what to say where it never comes."""
        until(lambda: self.status is not None, lambda: f"{otherwise}:\n{self.log[-4000:]}")
        assert self._status is not None
        return self._status

    def says(self, pattern: str) -> bool:
        """Whether a line of the log holds a pattern."""
        return re.search(pattern, self.log) is not None

    def wait_until_it_says(self, pattern: str) -> None:
        """Wait for a line of the log; the end of the process ends the waiting too."""
        until(
            lambda: self.says(pattern) or self.status is not None,
            lambda: f"the daemon never said {pattern!r}:\n{self.log[-4000:]}",
        )
        if not self.says(pattern):
            raise Hung(f"the daemon ended ({self.status}) before it said {pattern!r}:\n{self.log[-4000:]}")


class Starter:
    """The warm process daemons are forked from; a context manager, which leaves none alive."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._started = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.starter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
            env={**os.environ, "PYTHONWARNINGS": "default"},
        )

    def ask(self, job: dict[str, Any]) -> Any:
        """Give the warm process a job, and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, folder: Path, *arguments: str, crash: str = "", sabotage: Sabotage = ()) -> Daemon:
        """Start the command line in a folder."""
        self._started += 1
        out, err = (self._folder / f"{self._started:05}.{name}" for name in ("out", "err"))
        err.touch()
        job = {
            "arguments": list(arguments),
            "environment": {"STREAMKERNEL_CRASH": crash},
            "folder": str(folder),
            "out": str(out),
            "err": str(err),
            "sabotage": list(sabotage),
        }
        return Daemon(self, self.ask(job), err)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)
