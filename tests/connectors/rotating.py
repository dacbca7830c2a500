"""A log that a program writes, rotates and compresses, and the source that follows it."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import zstandard

from streamkernel.connectors import JsonLinesSource, Position, Record


class Log:
    """A file that a program writes lines to, and the source that follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = JsonLinesSource(path, follow=True)
        self.next = 0
        self.seen: list[Record] = []

    def write(self, count: int = 1, path: Path | None = None) -> None:
        with (path or self.path).open("ab") as file:
            for _ in range(count):
                file.write(b'{"a": %d}\n' % self.next)
                self.next += 1

    def rotate(self, number: int = 1) -> None:
        """Rename the parts as logrotate does."""
        for age in range(number, 0, -1):
            older, newer = self.part(age + 1), self.part(age)
            if newer.exists():
                newer.rename(older)
        self.path.rename(self.part(1))

    def part(self, age: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{age}")

    def open(self, position: Position | None = None) -> None:
        self.source.open({0: position} if position else None)

    def read(self) -> list[int]:
        """Read until nothing comes any more; the numbers that were read."""
        polled: list[Record] = []
        while records := self.source.poll(1000, timeout=0):
            polled += records
        assert not self.source.exhausted
        for record in polled:
            assert record.fault is None
        self.seen += polled
        return [record.x["a"] for record in polled]

    @property
    def numbers(self) -> list[int]:
        return [record.x["a"] for record in self.seen]


def compress(path: Path, suffix: str) -> Path:
    """Do what gzip and zstd do: the same time on the result, and the plain file gone."""
    data, status = path.read_bytes(), path.stat()
    packed = path.with_name(path.name + suffix)
    packed.write_bytes(gzip.compress(data) if suffix == ".gz" else zstandard.ZstdCompressor().compress(data))
    os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.unlink()
    return packed
