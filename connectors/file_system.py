"""The file system: open regular files only, make folders and make them durable, say what is in the way of a file.

A directory that others can write to may have anything under an expected name: a symbolic link to a file of another
user, a FIFO without a writer, a device.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from os import PathLike
from pathlib import Path

__all__ = ["IrregularFileError", "file_id", "make_folder", "open_regular", "sync_folder", "write_obstacle"]

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


# Of Linux, <linux/stat.h>: os.stat does not tell when a file was made there.
_HERE, _EMPTY_PATH, _BIRTH_TIME, _SIZE = -100, 0x1000, 0x800, 256
_MASK, _BIRTH = struct.Struct("=I"), struct.Struct("=80xqI")
# A file system that cannot sync a folder answers this: it loses a name only with the whole machine.
_CANNOT_SYNC = (errno.EBADF, errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)


class IrregularFileError(OSError):
    """A name leads to a link, a FIFO, a folder, a device or a socket, and not to a regular file."""


def open_regular(
    path: str | PathLike[str], flags: int, mode: int = 0o600, *, directory: int | None = None, alone: bool = False
) -> int:
    """Open a regular file, following no symbolic link.

    The parameters are those of `os.open`, with the open folder `directory` that a relative path starts from. A link in
    the folders before the file is followed, a file is cut (`os.O_TRUNC`) only when it is known to be one, and the
    descriptor is not inherited. With `alone`, a file with a second name (a hard link) is refused, too: what is written
    would be under both. Raises IrregularFileError for a link, a FIFO, a folder, a device or a socket, OSError where
    the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> os.mkfifo(f"{folder}/data")
    >>> open_regular(f"{folder}/data", os.O_RDONLY)
    Traceback (most recent call last):
        ...
    streamkernel.connectors.file_system.IrregularFileError: [Errno 22] is a FIFO, not a regular file: ...

    """
    opening = (flags & ~os.O_TRUNC) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, opening, mode, dir_fd=directory)
    except OSError as error:
        # A link gives ELOOP, a folder EISDIR, a socket or an unread FIFO ENXIO: say what it is, where it is that.
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            _refuse_irregular(path, os.stat(path, dir_fd=directory, follow_symlinks=False))
        raise
    try:
        status = os.fstat(descriptor)
        _refuse_irregular(path, status)
        if alone and status.st_nlink > 1:
            raise IrregularFileError(
                errno.EINVAL, "has a second name (a hard link): remove one of the names", str(path)
            )
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_irregular(path: str | PathLike[str], status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise IrregularFileError(errno.EINVAL, f"is {kind}, not a regular file", str(path))


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, where they are missing; the error has the reason of `write_obstacle`.

    Raises
    ------
    NotADirectoryError
        Where something else is there.
    OSError
        Where it cannot be made.

    """
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        why = write_obstacle(path / "file")
        kind = NotADirectoryError if isinstance(error, FileExistsError) else type(error)
        raise error if why is None else kind(error.errno, why, str(path)) from None


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where its file system can do that.

    Raises
    ------
    OSError
        Where the disk fails.

    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def write_obstacle(path: Path) -> str | None:
    """Return why a file cannot be written, or made where it and its folders are missing; None where nothing is known.

    Examples
    --------
    >>> write_obstacle(Path("/proc/foo/state"))
    'nothing can be made in /proc'

    """
    existing = path
    while not os.path.exists(existing):  # unlike Path.exists, False also in a folder that may not be entered
        existing = existing.parent
    if existing == path and path.is_dir():
        return "it is a folder"
    if existing != path and not existing.is_dir():
        return f"{existing} is not a folder"
    existing = existing if existing.name else Path(os.path.abspath(existing))  # "." names no folder
    if not os.access(existing, os.W_OK):
        read_only = os.statvfs(existing).f_flag & os.ST_RDONLY
        return f"{existing} is on a read-only file system" if read_only else f"no permission in {existing}"
    if existing != path and Path(os.path.realpath(existing)).parts[:2] in (("/", "proc"), ("/", "sys")):
        return f"nothing can be made in {existing}"
    return None


def file_id(file: int | os.PathLike[str]) -> list[int] | None:
    """Return what identifies a file or folder, open or by its path, among all others; None where the system cannot.

    An inode alone does not: the system gives it to another file later.

    Returns
    -------
    Its number (inode), and when it was made, in nanoseconds since 1970.

    Raises
    ------
    OSError
        Where there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as one, tempfile.TemporaryFile() as other:
    ...     file_id(one.fileno()) in (None, file_id(other.fileno()))
    False

    """
    status = os.stat(file)
    born = getattr(status, "st_birthtime", None)  # of macOS and FreeBSD, in seconds
    born = _birth(file) if born is None else int(born * 1e9)
    return None if born is None else [status.st_ino, born]


def _birth(file: int | os.PathLike[str]) -> int | None:
    try:
        statx = ctypes.CDLL(None).statx
    except AttributeError:  # an old C library
        return None
    found = ctypes.create_string_buffer(_SIZE)
    where = (file, b"", _EMPTY_PATH) if isinstance(file, int) else (_HERE, os.fsencode(file), 0)
    if statx(*where, _BIRTH_TIME, found) != 0:
        return None
    (mask,) = _MASK.unpack_from(found.raw)
    seconds, nanoseconds = _BIRTH.unpack_from(found.raw)
    return int(seconds * 10**9 + nanoseconds) if mask & _BIRTH_TIME else None
