"""A fork of the server: what it has done, what it uses, and what it leaves."""

from __future__ import annotations

import os
import resource
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Ran:
    """What a fork has done: its tests, and the one that failed or hangs."""

    tests: list[str] = field(default_factory=list)
    failed: str = ""
    hung: bool = False
    cpu: float = 0.0


@dataclass
class Fork:
    pid: int
    read: int
    folder: Path
    begun: float
    work: Generator[tuple[int, list[str]], Ran, None]
    ran: Ran = field(default_factory=Ran)
    running: str = ""
    cpu_before: float = 0.0
    rest: bytes = b""


def cpu_used() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def cpu_used_by(pid: int) -> float:
    """Return what a process and those that it waited for have used of the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def left_by(fork: Fork) -> Iterator[int]:
    """Find the processes that a fork started and left, by what it put into their environment."""
    token = f"MUTANTS_TOKEN={fork.folder.name}\0".encode()
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            if token in each.read_bytes():
                yield int(each.parent.name)
        except OSError:
            continue
