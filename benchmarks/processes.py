"""Programs that a benchmark starts and watches. Linux only: it reads /proc."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml


class Program:
    """A command of `streamkernel` in a process of its own, and what it logs.

    Parameters
    ----------
    folder
        Where it runs, and where its configuration and log are.
    command, arguments
        Such as ``"run"`` and its options.
    config
        The configuration, as text or as a document. None leaves the file that is there.

    """

    def __init__(self, folder: Path, command: str, *arguments: str, config: str | Mapping[str, Any] | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if config is not None:
            text = config if isinstance(config, str) else yaml.safe_dump(dict(config))
            (folder / "config.yaml").write_text(text)
        self._log = folder / f"{command}.log"
        whole = [sys.executable, "-m", "streamkernel", command, "config.yaml", *arguments]
        with self._log.open("wb") as log:
            # In a session of its own, as a service manager starts it: Linux shares processors between sessions first.
            self.process = subprocess.Popen(
                whole, cwd=folder, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
            )
        self.pid = self.process.pid

    @property
    def log(self) -> str:
        """What it logged so far."""
        return self._log.read_text()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def wait_for(self, pattern: str) -> str:
        """Wait for a line of the log; return the pattern's first group, or what it matched."""
        for _ in range(6000):
            if found := re.search(pattern, self.log):
                return found[1] if found.lastindex else found[0]
            if not self.alive:
                break
            time.sleep(0.05)
        raise SystemExit(f"no line of {self._log} has {pattern!r}: {self.log[-500:]}")

    def metrics(self) -> str:
        """Return the text of its metrics."""
        url = self.wait_for(r"serving metrics at (\S+)")
        text: str = urllib.request.urlopen(url, timeout=10).read().decode()
        return text

    def end(self) -> None:
        """End it by a signal."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


@contextmanager
def running(
    folder: Path, command: str, *arguments: str, config: str | Mapping[str, Any] | None = None
) -> Iterator[Program]:
    """Run a command of `streamkernel` as long as this context lasts."""
    program = Program(folder, command, *arguments, config=config)
    try:
        yield program
    finally:
        program.end()


def cpu_seconds(pid: int) -> float:
    """Return how many seconds a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int | str = "self") -> float:
    """Return the resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
