"""A disk that is full when it is told to be."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BYTES = 1 << 20


class _Mounted:
    """A file system of its own in memory: full, because a file fills it."""

    sabotage: tuple[tuple[str, dict[str, Any]], ...] = ()

    def __init__(self, directory: Path) -> None:
        self._ballast = directory / "ballast"

    def fill(self) -> None:
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        self._ballast.unlink()


class _Pretended:
    """Where nothing may be mounted: the daemon's own process is told that the disk is full."""

    def __init__(self, directory: Path) -> None:
        self._flag = directory.with_name("full")
        refusing = {"directory": str(directory), "number": errno.ENOSPC, "while_there": str(self._flag)}
        self.sabotage = (("refuse_files", refusing),)

    def fill(self) -> None:
        self._flag.touch()

    def free(self) -> None:
        self._flag.unlink()


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[_Mounted | _Pretended]:
    """Put a directory on a disk of a megabyte, for as long as this lasts; what is in it then is gone."""
    directory.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={_BYTES}", "tmpfs", str(directory)]
    mounted = os.geteuid() == 0 and mount and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not mounted:
        yield _Pretended(directory)
        return
    try:
        yield _Mounted(directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
