"""A systemd of its own for a test: process 1 of namespaces that nobody else sees, with the unit of the daemon."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from tests.deploy.programs import CONFIGS, ROOT, needed_program

__all__ = ["NamespacedSystemd"]

_SCRIPT = Path(__file__).with_name("namespace.sh")
_UNIT = CONFIGS / "systemd/streamkernel.service"
_NAMESPACES = ["--pid", "--fork", "--mount", "--cgroup", "--uts", "--ipc", "--mount-proc", "--kill-child=KILL"]
_LIMIT_SECONDS = 120.0


class NamespacedSystemd:
    """A running systemd; where none can be had the test is skipped.

    Parameters
    ----------
    folder
        Has ``config.yaml`` and ``stream.csv``.
    drop_in
        Settings of the section Service that differ from the unit's.

    """

    def __init__(self, folder: Path, drop_in: str) -> None:
        (folder / "drop-in.conf").write_text(f"[Service]\n{drop_in}StandardError=append:{folder}/log\n")
        self._log = folder / "log"
        self._systemctl = needed_program("systemctl", "systemd")
        self._group = _mounted_groups() / f"streamkernel-{uuid.uuid4().hex[:8]}"
        self._group.mkdir()
        command = ["unshare", *_NAMESPACES, "bash", _SCRIPT, folder, sysconfig.get_path("purelib"), ROOT, _UNIT]
        self._setup = folder / "setup"
        with self._setup.open("w") as said:
            self._process = subprocess.Popen(
                ["bash", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', self._group, *command],
                stdout=subprocess.DEVNULL,
                stderr=said,
            )

    def __enter__(self) -> Self:
        try:
            self.wait_for(lambda: self.control("show", "default.target").returncode == 0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End it with all its processes, and remove its control groups."""
        self._process.kill()
        self._process.wait()
        for folder, _, _ in os.walk(self._group, topdown=False):
            self.wait_for(lambda folder=folder: _removed(Path(folder)))

    @property
    def log(self) -> str:
        """What the daemon wrote."""
        return self._log.read_text() if self._log.exists() else ""

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the namespaces."""
        (first,) = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split() or ["0"]
        inside = ["nsenter", "--target", first, "--mount", "--pid", "--cgroup", "--"]
        return subprocess.run([*inside, *command], capture_output=True, text=True, timeout=_LIMIT_SECONDS)

    def control(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call `systemctl`."""
        return self.run(self._systemctl, "--no-pager", *arguments)

    def show(self, name: str) -> str:
        """Return a property of the daemon's unit."""
        return self.control("show", "streamkernel", "--value", f"--property={name}").stdout.strip()

    def wait_for(self, true: Callable[[], bool]) -> None:
        """Wait until something is true."""
        deadline = time.monotonic() + _LIMIT_SECONDS
        while not true():
            if time.monotonic() > deadline or (self._process.poll() or 0) > 0:
                raise AssertionError(f"it never was: {self._setup.read_text()}{self.log}")
            time.sleep(0.05)


def _removed(folder: Path) -> bool:
    with contextlib.suppress(OSError):  # its last process may not be gone yet
        folder.rmdir()
    return not folder.exists()


def _mounted_groups() -> Path:
    """Return where control groups of version 2 are, where namespaces can be made."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("systemd in namespaces needs root on Linux")
    version = "{}.{}".format(*sys.version_info)
    debian = subprocess.run(["/usr/bin/python3", "--version"], capture_output=True, text=True, check=False).stdout
    if not debian.startswith(f"Python {version}."):
        pytest.skip(f"the service runs with the system's Python, which is not {version}")
    if not Path("/lib/systemd/systemd").exists() or shutil.which("nsenter") is None:
        pytest.skip("there is no systemd")
    if subprocess.run(["unshare", *_NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("namespaces cannot be made here")
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2" and "rw" in options.split(","):
            return Path(place)
    pytest.skip("control groups of version 2 are not there to write to")
