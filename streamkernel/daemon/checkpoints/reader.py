"""Reads the checkpoints of another process, without its lock and without a change, and tells when there is a newer one.

A run in mode predict, a server and a run that begins with a trained model read the directory of a run that learns.
That one renames each new checkpoint into place and removes the oldest, so a file is whole whenever it has its name, and
may be gone between the moment it is listed and the moment it is opened: then there is a newer one, and the directory is
listed again.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.checkpoints.file import Checkpoint, read
from streamkernel.daemon.checkpoints.store import CheckpointStore, checkpoint_files

__all__ = ["CheckpointReader", "is_gone", "until_listed"]

Used = TypeVar("Used")
_Listing: TypeAlias = tuple[object, ...]

# Of a directory on a file server, the list may be some seconds old.
_TRIES, _PAUSE_SECONDS = 100, 0.05
_REMEDY = "restore a valid one, or let the run that learns write the next one"


def is_gone(error: CheckpointError) -> bool:
    """Return whether a checkpoint could not be read because it was removed after it was listed."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOENT, errno.ESTALE)


def until_listed(attempt: Callable[[], Used], directory: Path) -> Used:
    """Return what an attempt to read a directory gives, tried again while it meets files that are gone."""
    for _ in range(_TRIES):
        try:
            return attempt()
        except CheckpointError as error:
            if not (is_gone(error) and directory.is_dir()):
                raise
        time.sleep(_PAUSE_SECONDS)
    return attempt()


class CheckpointReader(Generic[Used]):
    """The newest usable checkpoint of a directory that another process writes to, and whether there is a newer one.

    The directory is not locked, nothing in it is renamed or made, and it may be read-only. A checkpoint that is damaged
    or refused is passed over for the one before, as the process that writes there would. One thread at a time calls it.

    Parameters
    ----------
    path
        A checkpoint directory, or one checkpoint file under whatever name.
    use
        Makes of a checkpoint what is wanted, such as its model; raises `CheckpointError` where its contents are
        refused, and `UnfitError` where those of an older one would be, too.

    Examples
    --------
    >>> import tempfile
    >>> store = CheckpointStore(Path(tempfile.mkdtemp()))
    >>> store.lock()
    >>> _ = store.write({}, b"one")
    >>> reader = CheckpointReader(store.directory, lambda checkpoint: checkpoint.payload)
    >>> reader.newest()
    b'one'
    >>> print(reader.newer())
    None
    >>> _ = store.write({}, b"two")
    >>> reader.newer()
    b'two'
    >>> store.close()

    """

    def __init__(self, path: Path, use: Callable[[Checkpoint], Used]) -> None:
        self.path = Path(path)
        self._use = use
        self._seen: _Listing | None = None  # what was listed when it was last read
        self._last: tuple[int, object] | None = None  # which checkpoint was last used

    def newest(self) -> Used:
        """Return what is made of the newest checkpoint that can be used.

        Raises
        ------
        UnfitError
            The newest one is sound, and does not fit: it has another format, or `use` says so.
        CheckpointError
            There is none, none is valid, or it cannot be read; the message says which, why and what to do.

        """
        self._seen = self._last = None
        found = self.newer()
        assert found is not None
        return found

    def newer(self) -> Used | None:
        """Return what is made of the newest checkpoint, None where it is the one that was used last.

        It costs no more than a look at the directory where nothing was written. After an error it tries again at the
        next call, and where the newest checkpoint does not fit, when there is another one.

        Raises
        ------
        UnfitError, CheckpointError
            As `newest`; what was used before is as good as it was.

        """
        seen = self._list()  # before it is read: what comes in between is newer
        if seen == self._seen:
            return None
        try:
            found = self._read()
        except UnfitError:
            self._seen = seen
            raise
        self._seen = seen
        return found

    def _list(self) -> _Listing:
        """Return what differs as soon as there is another newest checkpoint."""
        while True:
            try:
                files = checkpoint_files(self.path) if self.path.is_dir() else [self.path]
                newest = files[-1].lstat() if files else None
            except FileNotFoundError:
                if self.path.is_dir():
                    continue
                newest = None
            except OSError as error:
                raise self._unreadable(error) from error
            same = () if newest is None else (newest.st_dev, newest.st_ino, newest.st_size, newest.st_mtime_ns)
            return *files, same

    def _read(self) -> Used | None:
        try:
            return until_listed(self._try, self.path)
        except CheckpointError as error:
            cause = error.__cause__
            if isinstance(cause, PermissionError):
                raise self._unreadable(cause) from cause
            raise
        except OSError as error:
            raise self._unreadable(error) from error

    def _try(self) -> Used | None:
        if not self.path.exists():
            raise CheckpointError(f"{self.path}: there is no such directory or file: start the run that learns first")
        with self._named():
            if not self.path.is_dir():
                return self._used(read(self.path))[0]
            found = CheckpointStore(self.path).restore(self._used, aside=False, remedy=_REMEDY)
        if found is None:
            raise CheckpointError(f"{self.path}: {self._why_empty()}")
        return found[0]

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Raise errors with the path in them."""
        try:
            yield
        except CheckpointError as error:
            if str(error).startswith(str(self.path)):
                raise
            kind = UnfitError if isinstance(error, UnfitError) else CheckpointError
            raise kind(f"{self.path}: {error}") from error.__cause__

    def _used(self, checkpoint: Checkpoint) -> tuple[Used | None]:
        """Use a checkpoint, unless it is the one used last."""
        which = (checkpoint.number, checkpoint.header.get("written"))
        if which == self._last:
            return (None,)
        used = self._use(checkpoint)
        self._last = which
        return (used,)

    def _why_empty(self) -> str:
        inner = next((one for one in sorted(self.path.glob("partition-*")) if checkpoint_files(one)), None)
        if inner is not None:
            return f"holds a directory for each partition of a group: name one of them, such as {inner}"
        return "holds no checkpoint yet: start the run that learns first"

    def _unreadable(self, error: OSError) -> CheckpointError:
        advice = ""
        if isinstance(error, PermissionError):
            advice = ": join the group of the directory, and set checkpoint.mode: 0640 in the run that learns"
        return CheckpointError(f"{self.path}: cannot be read: {os_reason(error)}{advice}")
