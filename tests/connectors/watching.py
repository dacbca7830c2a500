"""What the tests of watched directories share: files that arrive, and what a source makes of them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from streamkernel.connectors import CsvSource, Position, Record, Source

CSV = partial(CsvSource, target="y")


def arrive(folder: Path, name: str, text: str | bytes, modified: int) -> Path:
    """Write a file under a name that is let be, and give it its own."""
    part = folder / f"{name}.part"
    part.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(part, ns=(modified, modified))
    return part.rename(folder / name)


def rows(*numbers: int) -> str:
    return "a,y\n" + "".join(f"{number},yes\n" for number in numbers)


def poll_all(source: Source) -> list[Record]:
    found: list[Record] = []
    while polled := source.poll(100, 0):
        found += polled
    return found


def values(records: list[Record]) -> list[object]:
    return [record.x.get("a") for record in records]


def kept(source: Source, records: list[Record]) -> dict[int, Position]:
    """Return what a checkpoint holds once these records are dealt with."""
    end = source.lasting(records[-1].next)
    return {end.partition: end}
