"""Files that are written whole or not at all: a full disk or a kill leaves the file that was there before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base.errors import DaemonError

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, then rename it. Write a device, a pipe and the like as they are.

    Raises
    ------
    DaemonError
        Where the file cannot be written.

    """
    real = Path(os.path.realpath(path))
    aside = real.with_name(f".streamkernel-{os.getpid()}.tmp")
    try:
        if real.exists() and not real.is_file():
            real.write_bytes(content)
            return
        try:
            aside.write_bytes(content)
            if real.exists():
                shutil.copymode(real, aside)
            _rename(aside, real)
        except PermissionError:  # a folder in which only this file may be written
            real.write_bytes(content)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise DaemonError(f"{path}: cannot be written: {os_reason(error)}") from None


def _rename(aside: Path, real: Path) -> None:
    try:
        os.replace(aside, real)
    except OSError:  # the file is a mount point
        real.write_bytes(aside.read_bytes())
