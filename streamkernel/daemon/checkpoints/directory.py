"""The state directory: opened once, and every file in it by its name there, without following a link.

The daemon trusts what it finds here, and writes what records held. So the directory is its user's alone, or a group's
to read, and nothing in it is opened but regular files.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from streamkernel.connectors.file_system import make_folder, open_regular
from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base.errors import CheckpointError

__all__ = ["StateDirectory"]

_log = logging.getLogger(__name__)

_OURS = re.compile(r"lock|learning(-labels)?|order(-labels)?\.log(\.tmp)?|\.?checkpoint-\d{12,}\.skc(\.\w+)*")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class StateDirectory:
    """The open directory of a daemon's state.

    Parameters
    ----------
    path
        The directory. Its last component must not be a symbolic link; those before it may be.
    mode
        The permissions of files, ``0o600`` by default; those who may read files may enter the directory.

    Raises
    ------
    FileNotFoundError
        Where it is not there.
    OSError
        Where it cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with StateDirectory(Path(tempfile.mkdtemp())) as directory:
    ...     os.close(directory.open("lock", os.O_RDWR | os.O_CREAT))
    ...     directory.names()
    ['lock']

    """

    def __init__(self, path: Path, mode: int = 0o600) -> None:
        self.path = path
        self.mode = mode
        if path.is_symlink():
            raise CheckpointError(
                f"{path}: is a symbolic link, which others could redirect: name the folder it points to, "
                f"{os.path.realpath(path)}"
            )
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    @classmethod
    def make(cls, path: Path, mode: int = 0o600) -> Self:
        """Open a directory, making it where it is missing, and close it to everybody else.

        Raises
        ------
        CheckpointError
            Where others may write to it, and that cannot be changed.
        OSError
            Where it cannot be made or opened.

        """
        made = not path.is_dir()
        if made:
            make_folder(path, _of_directory(mode))
            with cls(path.parent.resolve()) as parent:
                parent.sync()
        directory = cls(path, mode)
        try:
            directory._close_to_others()
        except BaseException:
            directory.close()
            raise
        return directory

    def _close_to_others(self) -> None:
        status = os.fstat(self._descriptor)
        allowed, permissions = _of_directory(self.mode), stat.S_IMODE(status.st_mode)
        user = os.geteuid()
        if status.st_uid not in (user, 0):
            _log.warning(
                "%s: belongs to user %d, who could replace checkpoints: give it to user %d",
                *(self.path, status.st_uid, user),
            )
        # A folder with other things in it is somebody's, and not ours to close.
        foreign = [name for name in self.names() if not _OURS.fullmatch(name)]
        wanted = (permissions & ~_OTHERS) | (allowed & _OTHERS)
        if wanted != permissions and not foreign:
            self._restrict(wanted, permissions)
        elif permissions & ~wanted:
            if permissions & stat.S_IWOTH:
                raise CheckpointError(
                    f"{self.path}: the directory is world-writable: give the daemon its own checkpoint directory"
                )
            _log.warning(
                "%s: other users may enter it, and the daemon leaves that, because it has more than checkpoints "
                "(%.60s): use a directory only for checkpoints",
                *(self.path, foreign[0]),
            )
        for name in self.names():
            if _OURS.fullmatch(name):
                self._restrict_file(name)

    def _restrict_file(self, name: str) -> None:
        with contextlib.suppress(OSError), open(self.open(name, os.O_RDONLY), "rb") as file:  # a reader reports it
            os.fchmod(file.fileno(), self.mode)

    def _restrict(self, wanted: int, before: int) -> None:
        try:
            os.fchmod(self._descriptor, wanted)
        except OSError as error:
            if before & ~wanted & _OTHERS_WRITE:
                raise CheckpointError(
                    f"{self.path}: other users may write there, and the daemon cannot change that "
                    f"({os_reason(error)}): "
                    f"chmod it to {wanted:04o}"
                ) from error
            _log.warning(
                "%s: its permissions %04o cannot be changed to %04o: %s", *(self.path, before, wanted, os_reason(error))
            )

    def open(self, name: str, flags: int, *, alone: bool = False) -> int:
        """Open a regular file; see `streamkernel.connectors.file_system.open_regular`."""
        with self.naming(name):
            return open_regular(name, flags, self.mode, directory=self._descriptor, alone=alone)

    def make_file(self, name: str) -> int:
        """Make a new file, in the place of what may be there, and open it for writing."""
        self.remove(name, missing_ok=True)
        descriptor = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.fchmod(descriptor, self.mode)  # whatever the umask
        return descriptor

    def names(self) -> list[str]:
        """List what is there, in the order of names."""
        return sorted(os.listdir(self._descriptor))

    def rename(self, name: str, new: str) -> None:
        """Rename a file, in the place of what has the new name."""
        with self.naming(name):
            os.rename(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str, *, missing_ok: bool = False) -> None:
        """Remove a file; a link is removed, not what it leads to."""
        with self.naming(name):
            try:
                os.unlink(name, dir_fd=self._descriptor)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def sync(self) -> None:
        """Make names durable."""
        with self.naming(""):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close it; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextlib.contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """Raise errors of what is done with a file, such as writing to it, with its whole path in them."""
        try:
            yield
        except OSError as error:
            raise type(error)(error.errno, os_reason(error), str(self.path / name)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _of_directory(mode: int) -> int:
    """Return the permissions of a directory in which files have these: who may read them may enter it.

    Examples
    --------
    >>> f"{_of_directory(0o640):o}"
    '750'

    """
    return mode | (mode & 0o444) >> 2
