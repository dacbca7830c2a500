"""Ports on the loopback interface, each for one test process at a time."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

_FOLDER = Path(tempfile.gettempdir()) / f"test-ports-{os.getuid()}"
# A port is reserved while its file is locked: until this process ends.
_locks: list[int] = []


def reserved_port() -> int:
    """Reserve a port for a server that cannot choose one, or that must come back at the same one.

    Below the range that the kernel hands out to outgoing connections: while the server is down, a client that retries
    could otherwise be given the server's own port, and connect to itself.
    """
    _FOLDER.mkdir(exist_ok=True)
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(15_000, 32_000)
        lock = os.open(_FOLDER / str(port), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
        else:
            _locks.append(lock)
            return port


def closed_port(held: socket.socket) -> int:
    """Bind a socket that never listens, and return its port: whoever connects there is refused."""
    held.bind(("127.0.0.1", 0))
    return int(held.getsockname()[1])
