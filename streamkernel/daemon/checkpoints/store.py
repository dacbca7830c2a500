"""The checkpoints of one daemon: files in order in a directory, and a lock that keeps a second daemon out."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from streamkernel.connectors.file_system import write_obstacle
from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.errors import CheckpointError, OtherFormatError, UnfitError
from streamkernel.daemon.checkpoints.directory import StateDirectory
from streamkernel.daemon.checkpoints.file import Checkpoint, encode_head, read, write_to
from streamkernel.daemon.checkpoints.lock import check_lock, take_lock

__all__ = ["CheckpointStore", "checkpoint_files"]

Used = TypeVar("Used")

_NAME = re.compile(r"checkpoint-([0-9]{12}|[1-9][0-9]{12,})\.skc")
_TEMPORARY = ".tmp"
_INVALID = ".invalid"
_OLD = ".old"

_log = logging.getLogger(__name__)


class _ClosedError(CheckpointError):
    """A checkpoint that may not be opened, whatever it holds."""


class CheckpointStore:
    """The checkpoints of one daemon: a directory, its lock, the order of its files.

    Files are called `checkpoint-000000000042.skc`; the number in the name is the order. A file found invalid gets
    `.invalid` appended, one set aside by `clear` gets `.old`.

    Parameters
    ----------
    directory
        Made on `lock` if it is not there.
    keep
        How many of the newest checkpoints stay, 3 by default.
    mode
        The permissions of the files, ``0o600`` by default.

    Raises
    ------
    ValueError
        `keep` is below 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> store = CheckpointStore(directory)
    >>> store.lock()
    >>> store.write({"consumed": 0}, b"a model").name
    'checkpoint-000000000000.skc'
    >>> store.newest()
    Checkpoint(number=0, header={'consumed': 0}, payload=b'a model')
    >>> store.close()

    """

    def __init__(self, directory: Path, keep: int = 3, mode: int = 0o600) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1, got {keep}")
        self.directory = Path(directory)
        self.keep = keep
        self._mode = mode
        self._files: StateDirectory | None = None
        self._lock = -1

    @property
    def files(self) -> StateDirectory:
        """The open directory, of a store that is locked."""
        if self._files is None:
            raise RuntimeError(f"{self.directory}: lock the directory before writing to it")
        return self._files

    def lock(self) -> None:
        """Take the directory, making it if needed, and remove what a killed daemon left half written.

        The lock is the kernel's (flock): it goes with the process, however that ends.

        Raises
        ------
        DirectoryInUseError
            Another live process holds the directory.
        CheckpointError
            The directory is a link, cannot be made or written, or others may write to it.
        OSError
            The system refuses it nevertheless, or its lock is no regular file.

        """
        if self._files is not None:
            return
        own = self.directory / "lock"
        if (why := write_obstacle(own)) is not None:
            raise CheckpointError(f"{own}: cannot be written: {why}")
        with contextlib.ExitStack() as stack:
            files = stack.enter_context(StateDirectory.make(self.directory, self._mode))
            lock = take_lock(files)
            stack.callback(os.close, lock)
            for name in files.names():
                if name.startswith(".checkpoint-") and name.endswith(_TEMPORARY):
                    files.remove(name)
            stack.pop_all()
        self._files, self._lock = files, lock

    def write(self, header: Mapping[str, Any], payload: bytes) -> Path:
        """Write the next checkpoint durably, then remove the oldest beyond `keep`; return the new file.

        Raises
        ------
        OSError
            The disk is full or failing. The checkpoints written before are as they were.
        CheckpointError
            The lock is another process's by now, or the header holds what `read` would refuse.
        RuntimeError
            The directory is not locked.

        """
        return self._put(max(_numbers(self.files), default=-1) + 1, header, payload)

    def replace(self, header: Mapping[str, Any], payload: bytes) -> Path:
        """Write a checkpoint durably in the place of the newest one, in one step; the older ones stay. See `write`."""
        return self._put(max(_numbers(self.files), default=0), header, payload)

    def _put(self, number: int, header: Mapping[str, Any], payload: bytes) -> Path:
        files = self.files
        check_lock(files)
        name = _file_name(number)
        temporary = f".{name}{_TEMPORARY}"
        head = encode_head(number, header, len(payload))
        try:
            with files.naming(temporary), open(files.make_file(temporary), "wb") as file:
                write_to(file, head, payload)
            crash.point("checkpoint-before-rename")
            files.rename(temporary, name)
            files.sync()
        except BaseException:
            with contextlib.suppress(OSError):
                files.remove(temporary, missing_ok=True)
            raise
        crash.point("checkpoint-after-rename")
        self._prune()
        return self.directory / name

    def newest(self) -> Checkpoint | None:
        """Return the newest valid checkpoint, None in a directory that has none; see `restore`."""
        return self.restore(lambda checkpoint: checkpoint)

    def restore(
        self,
        use: Callable[[Checkpoint], Used],
        *,
        aside: bool = True,
        remedy: str = "restore a valid one, or start over with --fresh",
    ) -> Used | None:
        """Use the newest checkpoint that can be used.

        Those that are damaged or refused before it are logged and renamed aside. Where none can be used, all stay.

        Parameters
        ----------
        use
            Makes of a checkpoint what is wanted; raises `CheckpointError` where its contents are refused, and
            `UnfitError` where an older one would be, too.
        aside
            Whether to rename what is refused.
        remedy
            What the error advises where no checkpoint is valid.

        Returns
        -------
        used
            What `use` gave; None in a directory that has no checkpoints.

        Raises
        ------
        UnfitError
            The newest checkpoint is sound, but not for this configuration, or of another format.
        CheckpointError
            There are files, but none is valid; or one cannot be opened.

        """
        with self._reading() as files:
            if files is None:
                return None
            refused: dict[str, CheckpointError] = {}
            for number in sorted(_numbers(files), reverse=True):
                name = _file_name(number)
                try:
                    used = use(self._read(files, name, number))
                except OtherFormatError as error:
                    raise OtherFormatError(self._named(name, error)) from error
                except (UnfitError, _ClosedError):
                    raise
                except CheckpointError as error:
                    refused[name] = error
                    continue
                self._pass_over(files, refused, aside)
                return used
            self._refuse_all(files, refused, remedy)
            return None

    def _pass_over(self, files: StateDirectory, refused: Mapping[str, CheckpointError], aside: bool) -> None:
        """Log, and rename, those that an older one replaces, now that there is one; till then all stay."""
        for name, error in refused.items():
            renamed = f"renamed to {name}{_INVALID}, " if aside else ""
            _log.warning("%s; %sthe next older checkpoint is tried", self._named(name, error), renamed)
            if aside:
                files.rename(name, name + _INVALID)

    def _refuse_all(self, files: StateDirectory, refused: Mapping[str, CheckpointError], remedy: str) -> None:
        invalid = [name for name in files.names() if name.startswith("checkpoint-") and name.endswith(_INVALID)]
        if refused or invalid:
            newest = [*(self._named(*one) for one in refused.items()), *reversed(invalid)][0]
            raise CheckpointError(
                f"{self.directory}: none of its {len(invalid) + len(refused)} checkpoints is valid, the newest is "
                f"{newest}: {remedy}"
            )

    def _named(self, name: str, error: CheckpointError) -> str:
        path = f"{self.directory / name}: "
        return str(error) if str(error).startswith(path) else f"{path}{error}"

    def clear(self) -> int:
        """Set all checkpoints aside, so that numbering begins at 0 again; those set aside before are removed.

        Return how many were removed.
        """
        files = self.files
        names = [name for name in files.names() if name.startswith("checkpoint-")]
        before = [name for name in names if name.endswith(_OLD)]
        for name in before:
            files.remove(name)
        # Oldest first: a kill in between leaves the newest, as if nothing had been cleared.
        for name in names:
            if ".skc" in name and not name.endswith(_OLD):
                files.rename(name, name + _OLD)
        return len(before)

    def close(self) -> None:
        """Release the lock; the file stays, for removing it would let two daemons lock two files of that name."""
        if self._files is not None:
            os.close(self._lock)
            self._files.close()
            self._files = None

    @contextlib.contextmanager
    def _reading(self) -> Iterator[StateDirectory | None]:
        """Return the directory to read in, also where it is not locked; None where it is not there."""
        if self._files is not None:
            yield self._files
            return
        try:
            files = StateDirectory(self.directory, self._mode)
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        with files:
            yield files

    def _read(self, files: StateDirectory, name: str, number: int) -> Checkpoint:
        path = self.directory / name
        try:
            checkpoint = read(path, files)
        except CheckpointError as error:
            cause = error.__cause__
            # A file that may not be opened, or that a file server has removed, is not broken; one on a bad disk is.
            if isinstance(cause, OSError) and cause.errno != errno.EIO:
                raise _ClosedError(str(error)) from cause
            raise
        if checkpoint.number != number:
            raise CheckpointError(f"{path}: holds checkpoint {checkpoint.number}, so the file was renamed or copied")
        return checkpoint

    def _prune(self) -> None:
        for number in sorted(_numbers(self.files))[: -self.keep]:
            try:
                self.files.remove(_file_name(number))
            except OSError as error:
                # The new checkpoint is durable: an old file too many is no reason to call it failed.
                _log.warning("%s: cannot be removed: %s", self.directory / _file_name(number), os_reason(error))


def checkpoint_files(directory: Path) -> list[Path]:
    """Return the files of the checkpoints in a directory, the oldest first, without those that were set aside.

    Raises
    ------
    OSError
        What is there is no directory, or cannot be listed.

    """
    try:
        found = [name for name in os.listdir(directory) if _NAME.fullmatch(name)]
    except FileNotFoundError:
        return []
    return [directory / name for name in sorted(found, key=lambda name: (len(name), name))]


def _file_name(number: int) -> str:
    return f"checkpoint-{number:012d}.skc"


def _numbers(files: StateDirectory) -> list[int]:
    found = (_NAME.fullmatch(name) for name in files.names())
    return [int(match[1]) for match in found if match]
