"""Processes that a test has started: whether they run, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["alive", "wait_until"]

_SECONDS = 120
"""How long anything may take: only what hangs gets there."""


def wait_until(holds: Callable[[], bool], what: str = "it", pause: float = 0.01) -> None:
    """Wait until something holds; what it is stands in the failure.

    The one way to wait that ring 1 allows: no result depends on how long it takes.
    """
    deadline = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(pause)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
