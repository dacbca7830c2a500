"""The socket of a service manager, as systemd gives one to a service: a test reads what a daemon tells."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

__all__ = ["ServiceManager"]

_LIMIT_SECONDS = 60.0


class ServiceManager:
    """Takes the datagrams of `sd_notify`.

    Parameters
    ----------
    abstract
        Whether the socket has no path, but a name in Linux's abstract namespace.

    """

    def __init__(self, abstract: bool = False) -> None:
        # Not the test's own folder: the path of a socket may have 107 bytes.
        self._folder = Path(tempfile.mkdtemp())
        self.name = f"@{self._folder}" if abstract else str(self._folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self.name[1:] if abstract else self.name)
        self.told: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket, and remove it."""
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def wait_for(self, enough: str | Callable[[list[str]], bool]) -> list[str]:
        """Wait for a line, or until the lines that come from now on are enough; return these."""
        new: list[str] = []
        deadline = time.monotonic() + _LIMIT_SECONDS
        while time.monotonic() < deadline:
            new += self.read(0.1)
            if enough in new if isinstance(enough, str) else enough(new):
                return new
        raise AssertionError(f"{enough!r} never came: {self.told}")

    def read(self, seconds: float) -> list[str]:
        """Return the lines that are there, or the first that come within some seconds."""
        lines: list[str] = []
        while True:
            self._socket.settimeout(0.0 if lines else seconds)
            try:
                lines += self._socket.recv(4096).decode().split("\n")
            except (TimeoutError, BlockingIOError):
                self.told += lines
                return lines

    def silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long, once what is on its way has come."""
        self.read(0.0)
        deadline = time.monotonic() + _LIMIT_SECONDS
        while time.monotonic() < deadline:
            if not self.read(seconds):
                return True
        return False
