"""Opening an output file: what of a file that is there already is cut off, kept, emptied, or not touched."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from streamkernel.connectors.durable import sync_folder
from streamkernel.connectors.files.bytes import SUFFIXES, open_file
from streamkernel.connectors.files.locking import lock
from streamkernel.connectors.files.mark import END_BYTES, FileMark, first_bytes, last_bytes
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import Mark, SinkError, SourceError
from streamkernel.connectors.regular import make_folder, write_obstacle

Existing: TypeAlias = Literal["refuse", "append", "replace"]
"""What becomes of a file that holds something and that no checkpoint knows."""

_FLAGS = os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
# What to do about a file that is not what the checkpoint says.
_REMEDY = "put the right file back, give another path to continue in a new file, or start over with --fresh"


@dataclass
class OpenFile:
    """A file that can be written to at its end: how long it is, and its first and last bytes, at most 4,096 each.

    Nothing can be cut off from a `special` one, a pipe or a device. What is written to an `appended` one follows what
    others wrote, and the last line of that has no end where it is `torn`.
    """

    descriptor: int
    special: bool = False
    length: int = 0
    head: bytes = b""
    tail: bytes = b""
    appended: bool = False
    torn: bool = False

    def note(self, data: bytes) -> None:
        """Note bytes that were written at the end."""
        self.length += len(data)
        if len(self.head) < END_BYTES:
            self.head = (self.head + data[:END_BYTES])[:END_BYTES]
        self.tail = (self.tail + data[-END_BYTES:])[-END_BYTES:]


def is_special(path: Path) -> bool:
    """Tell whether a path is a pipe, a device or a file of the system, such as /dev/null and /dev/stdout."""
    if path.parts[:2] in (("/", "dev"), ("/", "proc")) and path.parts[:3] != ("/", "dev", "shm"):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def open_output(path: Path, mark: Mark | None, existing: Existing) -> OpenFile:
    """Open a file for writing, under a lock, and make its directory where that is missing.

    With a mark of a checkpoint the file is cut to that length, if it is the one the mark speaks of; without one,
    `existing` says what becomes of a file that holds something. Raises SinkError where the file is not the marked one,
    holds something and is to be refused, or is locked; OSError where the system refuses.
    """
    if (why := write_obstacle(path)) is not None:
        raise SinkError(f"{path}: cannot be written: {why}")
    if is_special(path):
        return OpenFile(_open_special(path), special=True)
    make_folder(path.parent)
    known = FileMark.from_json(path, mark)
    # Read as well: what is there is compared with the mark.
    descriptor = open_existing(path, os.O_RDWR | (os.O_CREAT if known is None or not known.length else 0), known)
    try:
        lock(descriptor, path)
        return _prepare(path, descriptor, known, existing)
    except BaseException:
        os.close(descriptor)
        raise


def find_problem(path: Path, mark: Mark | None, existing: Existing, *, alone: bool = False) -> None:
    """Raise the SinkError that `open_output` would, changing nothing.

    With `alone`, another process that writes to the file is a problem: the lock is taken for a moment then.
    """
    if is_special(path):
        return
    known = FileMark.from_json(path, mark)
    try:
        descriptor = open_existing(path, os.O_RDONLY, known)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SinkError(f"{path}: cannot be read: {os_reason(error)}") from None
    try:
        if alone:
            lock(descriptor, path)
        _find_length(path, descriptor, known, existing)
    finally:
        os.close(descriptor)


def verify_unchanged(path: Path, file: OpenFile) -> None:
    """Raise SinkError where an open output has lost its name, or does not hold just what was written to it."""
    status = os.fstat(file.descriptor)
    try:
        named = os.path.samestat(status, os.stat(path))
    except FileNotFoundError:
        named = False
    if not named:
        raise SinkError(
            f"{path}: was renamed, removed or replaced while the daemon wrote to it: do not touch outputs of a "
            f"running daemon; {_REMEDY}"
        )
    if status.st_size != file.length:
        raise SinkError(
            f"{path}: holds {status.st_size:,} bytes where {file.length:,} were written, another process truncates "
            f"it or writes to it: stop that process; {_REMEDY}"
        )


def _open_special(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | _FLAGS)
    except OSError as error:
        if path.is_fifo() and not isinstance(error, PermissionError):
            raise SinkError(f"{path}: this pipe has no reader: start its reader first") from None
        raise


def open_existing(path: Path, flags: int, mark: FileMark | None = None) -> int:
    """Open a regular file; raise SinkError where it is none, or is missing though a mark knows bytes of it."""
    try:
        descriptor = os.open(path, flags | _FLAGS, 0o666)
    except FileNotFoundError:
        if mark is None or not mark.length:
            raise
        raise SinkError(
            f"{path}: there is no such file, and {mark.length:,} bytes of it are recorded at the checkpoint: "
            f"{_advice(path, mark)}"
        ) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SinkError(f"{path}: cannot be written: it is a folder")
    return descriptor


def half_set_aside(old: Path) -> str:
    """Return what to do about a marked output that has the name of one set aside."""
    return (
        f"a start with --fresh that was killed renamed it to {old.name}: start with --fresh again to start over, or "
        "rename it back to continue"
    )


def _advice(path: Path, mark: FileMark) -> str:
    """Return what to do about a file that is missing: it may be set aside, and the checkpoints not yet."""
    old = path.with_name(path.name + ".old")
    with suppress(OSError):
        descriptor = os.open(old, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if mark.difference(descriptor) is None:
                return half_set_aside(old)
        finally:
            os.close(descriptor)
    return _REMEDY


def _prepare(path: Path, descriptor: int, mark: FileMark | None, existing: Existing) -> OpenFile:
    length, appended = _find_length(path, descriptor, mark, existing)
    head, tail = first_bytes(descriptor, length), last_bytes(descriptor, length)
    torn = appended and (_last_byte(path) if path.suffix in SUFFIXES else tail[-1:]) not in (b"", b"\n")
    if os.fstat(descriptor).st_size > length:
        os.ftruncate(descriptor, length)
    sync_folder(path.parent)
    return OpenFile(descriptor, False, length, head, tail, appended, torn)


def _find_length(path: Path, descriptor: int, mark: FileMark | None, existing: Existing) -> tuple[int, bool]:
    """Return the length to cut the file to, and whether lines are appended to those of others then."""
    size = os.fstat(descriptor).st_size
    if mark is not None and (size == 0 or mark.names(descriptor)):
        difference = mark.difference(descriptor)
        if difference is not None:
            raise SinkError(f"{path}: {difference}; it was not touched: {_REMEDY}")
        return mark.length, False
    if size == 0 or existing == "replace":
        return 0, False
    if existing == "append":
        return size, True
    raise SinkError(
        f"{path}: holds {size:,} bytes that no checkpoint of this daemon knows, and was not touched: move the file "
        "away, or set existing: append or existing: replace for this output"
    )


def _last_byte(path: Path) -> bytes:
    """Read a compressed file to its end: a new member after one that is cut short could not be read."""
    last = b""
    try:
        file = open_file(path)
        try:
            while not file.ended:
                last = file.read(time.monotonic())[-1:] or last
        finally:
            file.close()
    except SourceError as error:
        raise SinkError(f"{error}: lines cannot be appended to it, move it away") from None
    return last
