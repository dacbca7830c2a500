"""Files that are written whole or not at all: a full disk or a kill leaves the file that was there before."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base.errors import DaemonError

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, then give it its own; a device, a pipe and the like are written as they are.

    Raises
    ------
    DaemonError
        Where the file cannot be written.

    """
    try:
        if not _replaced(Path(os.path.realpath(path)), content):
            path.write_bytes(content)
    except OSError as error:
        raise DaemonError(f"{path}: cannot be written: {os_reason(error)}") from None


def _replaced(real: Path, content: bytes) -> bool:
    """Put a new file in the place of one; return False where that cannot be done."""
    try:
        before = os.stat(real)
    except FileNotFoundError:
        before = None
    if before is not None and (not stat.S_ISREG(before.st_mode) or before.st_nlink > 1):
        return False
    aside = real.parent / f".streamkernel-{os.getpid()}.tmp"
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError:  # such as a folder in which this one file may be written
        return False
    try:
        with os.fdopen(descriptor, "wb") as file:
            if before is not None:
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            file.write(content)
        return _renamed(aside, real)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)


def _renamed(aside: Path, real: Path) -> bool:
    try:
        os.replace(aside, real)
    except OSError:  # such as a file that is a mount point
        return False
    return True
