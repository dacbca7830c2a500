"""Which partitions a topic had when its group was first at work.

`start: latest` leaves out what came before that. A partition that is added to the topic later holds nothing older, so
it is read from its first record, however late a member gets it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Collection
from pathlib import Path

from streamkernel.connectors.file_system import make_folder

__all__ = ["is_added", "note_first_partitions"]

_NAME = "first-partitions.json"


def note_first_partitions(directory: Path, partitions: Collection[int]) -> None:
    """Write down which partitions the topic has, in the directory of all members, unless that was done before.

    Raises
    ------
    OSError
        Where it cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> note_first_partitions(directory, [0, 1])
    >>> note_first_partitions(directory, [0, 1, 2])
    >>> is_added(directory, 1), is_added(directory, 2)
    (False, True)

    """
    if (directory / _NAME).exists():
        return
    make_folder(directory)
    temporary = directory / f".{_NAME}-{socket.gethostname()}-{os.getpid()}"
    try:
        with temporary.open("w") as file:
            json.dump(sorted(partitions), file)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # another member was first
            (directory / _NAME).hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)


def is_added(directory: Path, partition: int) -> bool:
    """Return whether a partition was added since the group was first at work."""
    path = directory / _NAME
    return path.exists() and partition not in json.loads(path.read_text())
