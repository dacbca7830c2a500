"""The lock of a checkpoint directory: the kernel's, on a file that names the process which holds it."""

from __future__ import annotations

import fcntl
import os
import socket

from streamkernel.daemon.base.errors import CheckpointError, DirectoryInUseError
from streamkernel.daemon.checkpoints.directory import StateDirectory

__all__ = ["check_lock", "take_lock"]

_LONGEST_HOLDER = 300


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
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def _holder() -> bytes:
    return f"{os.getpid()} {socket.gethostname()}".encode()


def _shown(holder: bytes) -> str:
    pid, _, host = holder.decode(errors="replace").partition(" ")
    return f"process {pid or 'unknown'}" + (f" on {host}" if host not in ("", socket.gethostname()) else "")
