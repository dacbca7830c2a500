"""A daemon that learns with its server and its clients: all of it is stopped and goes on together.

What has to be compared runs in short turns on a processor that nobody else has then: a machine whose speed drifts
treats all alike, and the start of the processes is not part of it. Linux only: it reads /proc.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

_ROOT = Path(__file__).parents[1]


class Reading(NamedTuple):
    """How far a daemon is: bytes read, and seconds of the processor of itself and of the process of its server."""

    at: float
    read: int
    cpu: float
    server_cpu: float


class WatchedDaemon:
    """`streamkernel run` in a process of its own, and its clients.

    Parameters
    ----------
    folder
        For its configuration and its files.
    document
        The configuration; the source is a file.
    clients
        The arguments of `monitoring_load` of each.

    Attributes
    ----------
    port
        Of its metrics; None where none are served.

    """

    def __init__(self, folder: Path, document: Mapping[str, Any], clients: Sequence[Sequence[str]] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump(dict(document)))
        command = [sys.executable, "-m", "streamkernel", "run", str(config), "--fresh"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.port = self._wait_until_reading()
        self._server = [int(pid) for pid in _children(self._process.pid)]
        self._clients = [] if self.port is None else [start_client(self.port, one) for one in clients]

    def _wait_until_reading(self) -> int | None:
        assert self._process.stderr is not None
        log = ""
        while "reading jsonl" not in log:
            line = self._process.stderr.readline()
            assert line, f"the daemon failed: {log}"
            log += line
        threading.Thread(target=self._process.stderr.read, daemon=True).start()  # so that it never waits for us
        found = re.search(r"serving metrics at http://127\.0\.0\.1:(\d+)/", log)
        return None if found is None else int(found[1])

    def wait_for_answers(self) -> None:
        """Wait until the server answers: its process is started together with the daemon."""
        while True:
            with contextlib.suppress(urllib.error.HTTPError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz").close()
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on()
        for client in self._clients:
            client.kill()
            client.communicate()
        self._process.terminate()
        self._process.wait()

    def pause(self) -> None:
        """Stop all of it."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let all of it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in (*(client.pid for client in self._clients), *self._server, self._process.pid):
            os.kill(pid, number)

    def read(self) -> Reading:
        """Return how far the daemon is."""
        assert self._process.poll() is None, "the daemon has ended: its stream was too short"
        server = sum(map(_cpu_seconds, self._server))
        return Reading(time.monotonic(), _bytes_read(self._process.pid), _cpu_seconds(self._process.pid), server)

    def seen(self) -> list[dict[str, Any]]:
        """End the clients, and return what each saw."""
        clients, self._clients = self._clients, []
        return [json.loads(client.communicate()[0]) for client in clients]


def start_client(port: int | str, arguments: Sequence[str]) -> "subprocess.Popen[str]":
    """Start clients; what they saw they print when their standard input is closed."""
    command = [sys.executable, "-m", "benchmarks.monitoring_load", str(port), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _bytes_read(pid: int) -> int:
    """Return how much a process has read: once its modules are imported, its stream, and next to nothing else."""
    counts = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(counts["rchar"])


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
