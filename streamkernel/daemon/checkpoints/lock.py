"""The lock of a checkpoint directory: the kernel's, on a file that names the process which holds it."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

from streamkernel.connectors.file_system import open_regular
from streamkernel.daemon.base.errors import CheckpointError, DirectoryInUseError
from streamkernel.daemon.checkpoints.directory import StateDirectory

__all__ = ["check_lock", "find_holder", "take_lock"]

_LONGEST_HOLDER = 300
_LOOK_SECONDS = 0.05


def take_lock(files: StateDirectory) -> int:
    """Lock a directory for this process, and return the descriptor of the lock: closing it releases the lock.

    Raises
    ------
    DirectoryInUseError
        Another live process holds the directory.
    OSError
        The lock cannot be made or written, or is no regular file.

    """
    lock = files.open("lock", os.O_RDWR | os.O_CREAT, alone=True)
    try:
        try:
            _lock_soon(lock)
        except BlockingIOError as error:
            holder = _shown(os.pread(lock, _LONGEST_HOLDER, 0))
            raise DirectoryInUseError(
                f"{files.path}: in use by another daemon ({holder}): stop it, or give this one its own checkpoint "
                "directory",
                holder,
            ) from error
        with files.naming("lock"):
            os.ftruncate(lock, 0)
            os.pwrite(lock, _holder(), 0)
    except BaseException:
        os.close(lock)
        raise
    return lock


def find_holder(directory: Path) -> str | None:
    """Return the process that holds the lock of a directory; None if none does, or the lock cannot be read.

    To find out, it shares the lock for a moment. `take_lock` tries again for that reason.
    """
    try:
        lock = open_regular(directory / "lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return _shown(os.pread(lock, _LONGEST_HOLDER, 0)) if isinstance(error, BlockingIOError) else None
    finally:
        os.close(lock)
    return None


def check_lock(files: StateDirectory) -> None:
    """Raise a CheckpointError unless this process wrote its name into the lock last.

    A file server may take the lock from a machine it has not heard for long.
    """
    try:
        lock = files.open("lock", os.O_RDONLY)
    except FileNotFoundError:
        raise CheckpointError(
            f"{files.path}: its lock was removed, and another daemon may use it: nothing is written"
        ) from None
    try:
        holder = os.pread(lock, _LONGEST_HOLDER, 0)
    finally:
        os.close(lock)
    if holder != _holder():
        raise CheckpointError(
            f"{files.path}: was taken over by another daemon ({_shown(holder)}): nothing is written any more"
        )


def _lock_soon(lock: int) -> None:
    """Take a lock, also while `find_holder` looks at it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(_LOOK_SECONDS)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder() -> bytes:
    return f"{os.getpid()} {socket.gethostname()}".encode()


def _shown(holder: bytes) -> str:
    pid, _, host = holder.decode(errors="replace").partition(" ")
    return f"process {pid or 'unknown'}" + (f" on {host}" if host not in ("", socket.gethostname()) else "")
