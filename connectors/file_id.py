"""What tells a file from all others, whatever it holds: its number and when it was made. Numbers are given again."""

from __future__ import annotations

import ctypes
import os
import struct

__all__ = ["file_id", "is_file_id"]

# Of Linux, <linux/stat.h>: os.stat does not tell when a file was made there.
_HERE, _EMPTY_PATH, _BIRTH_TIME, _SIZE = -100, 0x1000, 0x800, 256
_MASK, _BIRTH = struct.Struct("=I"), struct.Struct("=80xqI")


def file_id(file: int | os.PathLike[str]) -> list[int] | None:
    """Return what tells a file or folder, open or by its path, from all others; None where the system does not.

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


def is_file_id(value: object) -> bool:
    """Return whether a value read from a checkpoint is what `file_id` gives."""
    if value is None:
        return True
    return isinstance(value, list) and len(value) == 2 and all(type(one) is int and 0 <= one < 2**64 for one in value)
