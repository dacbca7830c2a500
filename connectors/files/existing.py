"""An output file that exists already: it is locked, and cut to the mark, appended to, emptied, refused or set aside."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from streamkernel.connectors.file_system import make_folder, sync_folder, write_obstacle
from streamkernel.connectors.files.bytes import open_file
from streamkernel.connectors.files.mark import FileMark
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import Mark, SinkError, SourceError

Existing: TypeAlias = Literal["refuse", "append", "replace"]
"""What becomes of a file that has content and that no checkpoint knows."""

STANDARD_OUTPUT = "-"
_log = logging.getLogger(__name__)

_FLAGS = os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
# The remedy for a file that the checkpoint does not match.
_REMEDY = "put the right file back, give another path to continue in a new file, or start over with --fresh"
# A killed process closes its files one after the other.
_GRACE_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@dataclass
class OpenFile:
    """A file that can be written to at its end, and its length.

    A pipe or a device is `special`: nothing can be cut off from it. An `appended` file begins with lines of others. Its
    last line has no end where it is `torn`.
    """

    descriptor: int
    special: bool = False
    length: int = 0
    appended: bool = False
    torn: bool = False


def is_special(path: Path) -> bool:
    """Return whether a path is standard output, a pipe, a device or a file of the system, such as /dev/null.

    No byte can be taken back from it.
    """
    if str(path) == STANDARD_OUTPUT:
        return True
    if path.parts[:2] in (("/", "dev"), ("/", "proc")) and path.parts[:3] != ("/", "dev", "shm"):
        return True
    return os.path.exists(path) and not (path.is_file() or path.is_dir())


def open_output(path: Path, mark: Mark | None, existing: Existing) -> OpenFile:
    """Open a file for writing, under a lock, and make its directory where it is missing.

    With a mark the file is cut to its length, if it is the marked file. Without one, `existing` says what becomes of a
    file that has content. Raises SinkError where the file is not the marked one, is refused, or is locked; OSError
    where the system refuses.
    """
    if (why := write_obstacle(path)) is not None:
        raise SinkError(f"{path}: cannot be written: {why}")
    if is_special(path):
        return OpenFile(_open_special(path), special=True)
    make_folder(path.parent)
    known = FileMark.from_json(path, mark)
    # Read as well: the content is compared with the mark.
    descriptor = _open_existing(path, os.O_RDWR | (os.O_CREAT if known is None or not known.length else 0), known)
    try:
        lock(descriptor, path)
        length, appended = _find_length(path, descriptor, known, existing)
        torn = appended and _last_byte(path) not in (b"", b"\n")
        if os.fstat(descriptor).st_size > length:
            os.ftruncate(descriptor, length)
        sync_folder(path.parent)
    except BaseException:
        os.close(descriptor)
        raise
    return OpenFile(descriptor, False, length, appended, torn)


def find_problem(path: Path, mark: Mark | None, existing: Existing, *, alone: bool = False) -> None:
    """Raise the SinkError that `open_output` would, changing nothing.

    With `alone`, another process that writes to the file is a problem: the lock is taken for a moment then.
    """
    if is_special(path):
        return
    known = FileMark.from_json(path, mark)
    with suppress(FileNotFoundError), _reading(path, known) as descriptor:
        if alone:
            lock(descriptor, path)
        _find_length(path, descriptor, known, existing)


def verify_unchanged(path: Path, file: OpenFile) -> None:
    """Raise SinkError where an open output has lost its name, or has other content than was written to it."""
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


def set_aside(path: Path, mark: Mark | None, before: Mark | None) -> str:
    """Rename the file that a checkpoint knows to ``.old``; a file that it does not know stays.

    `mark` and `before`, and the phrase that it returns, are those of `Sink.set_aside`. Raises SinkError where the new
    name is that of another file, or the file is locked.
    """
    names = find_names(path, mark, before)
    return "" if names is None else rename_aside(*names)


def rename_aside(path: Path, old: Path) -> str:
    """Rename an output, in place of the one that was set aside before; return a phrase about it."""
    replaced = " (removed: the one before)" if old.exists() else ""
    try:
        if old.is_dir():
            shutil.rmtree(old)
        path.rename(old)
    except OSError as error:
        raise SinkError(f"{path}: cannot be set aside as {old.name}: {os_reason(error)}: move it away") from None
    return f"renamed {path} to {old.name}{replaced}"


def find_names(path: Path, mark: Mark | None, before: Mark | None) -> tuple[Path, Path] | None:
    """Return the file that `set_aside` would rename and its new name, changing nothing; None where it stays."""
    if is_special(path):
        return None
    path = Path(os.path.realpath(path))  # of a link, the file it leads to
    if not path.exists() or not _is_marked(path, mark, locked=True):
        return None
    old = path.with_name(path.name + ".old")
    if old.exists() and not (before is not None and _is_marked(old, before)):
        raise SinkError(f"{path}: cannot be set aside as {old.name}, which is another file: move that one away")
    return path, old


def half_set_aside(old: Path) -> str:
    """Return the remedy for a marked output that has the name of one set aside."""
    return (
        f"a start with --fresh that was killed renamed it to {old.name}: start with --fresh again to start over, or "
        "rename it back to continue"
    )


def _is_marked(path: Path, mark: Mark | None, *, locked: bool = False) -> bool:
    """Return whether a file is the one of a mark; without a mark, each is."""
    try:
        known = FileMark.from_json(path, mark)
        with _reading(path) as descriptor:
            if locked:
                lock(descriptor, path)
            return known is None or known.is_of(descriptor)
    except (OSError, SinkError):
        return False


@contextmanager
def _reading(path: Path, mark: FileMark | None = None) -> Iterator[int]:
    """Open a file for reading; FileNotFoundError where there is none, SinkError where it cannot be read."""
    try:
        descriptor = _open_existing(path, os.O_RDONLY, mark)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SinkError(f"{path}: cannot be read: {os_reason(error)}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_existing(path: Path, flags: int, mark: FileMark | None) -> int:
    """Open a regular file; raise SinkError where it is none, or is missing though a mark has bytes of it."""
    try:
        descriptor = os.open(path, flags | _FLAGS, 0o666)
    except FileNotFoundError:
        if mark is None or not mark.length:
            raise
        old = path.with_name(path.name + ".old")
        remedy = half_set_aside(old) if _is_marked(old, mark._asdict()) else _REMEDY
        raise SinkError(
            f"{path}: there is no such file, and {mark.length:,} bytes of it are recorded at the checkpoint: {remedy}"
        ) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SinkError(f"{path}: cannot be written: it is a folder")
    return descriptor


def _open_special(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | _FLAGS)
    except OSError as error:
        if path.is_fifo() and not isinstance(error, PermissionError):
            raise SinkError(f"{path}: this pipe has no reader: start its reader first") from None
        raise


def _find_length(path: Path, descriptor: int, mark: FileMark | None, existing: Existing) -> tuple[int, bool]:
    """Return the length to cut the file to, and whether lines are then appended to lines of others."""
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
    """Return the last byte; a compressed file is read to its end, as a member after a torn one is lost."""
    try:
        with closing(open_file(path)) as file:
            last, offset = b"", max(0, file.size - 1) if file.plain else 0
            while block := file.read(offset):
                last, offset = block[-1:], offset + len(block)
    except SourceError as error:
        raise SinkError(f"{error}: lines cannot be appended to it, move it away") from None
    return last


def lock(descriptor: int, path: Path) -> None:
    """Take the exclusive lock (flock) on an open file; the kernel gives it back when the file is closed.

    Raises SinkError where another process, or another output of this one, holds it.
    """
    deadline = time.monotonic() + _GRACE_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise SinkError(
                    f"{path}: another output writes to it ({_holder(descriptor)}): stop that one, or give this one "
                    "its own file"
                ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return _log.warning("%s: its file system has no locks: make sure that nothing else writes to it", path)
        time.sleep(_PAUSE_SECONDS)


def _holder(descriptor: int) -> str:
    """Return which process holds the lock, if known: Linux lists all locks by inode."""
    inode = str(os.fstat(descriptor).st_ino)
    try:
        held = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        held = []
    for line in held:
        # 1: FLOCK  ADVISORY  WRITE 1234 00:2f:5678 0 EOF
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
            return "this process" if fields[4] == str(os.getpid()) else f"process {fields[4]}"
    return "an unknown process"
