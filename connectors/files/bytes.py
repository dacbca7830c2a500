"""A file as a stream of decompressed bytes, which knows where it is and what it is.

Offsets always count decompressed bytes. The identity of a file is a hash of its beginning, so that a position taken
in one file is never applied to another.
"""

from __future__ import annotations

import hashlib
import os
import select
import stat
import time
from abc import ABC, abstractmethod
from pathlib import Path

from connectors.ports import Position, SourceError

IDENTITY_BYTES = 4096
BLOCK_BYTES = 2**18
STANDARD_INPUT = "-"


def identity(beginning: bytes) -> str:
    """Return the identity of a file that begins with the given bytes (at most 4096).

    Examples
    --------
    >>> identity(b"x,y")[:12]
    '3:968e772cf1'

    """
    return f"{len(beginning)}:{hashlib.sha256(beginning).hexdigest()}"


def identity_length(stream: str) -> int | None:
    """Return how many bytes an identity covers, None for a string that is no identity of a file.

    Examples
    --------
    >>> identity_length(identity(b"x,y")), identity_length("synth.SEA{}")
    (3, None)

    """
    length, colon, digest = stream.partition(":")
    if not colon or len(digest) != 64 or not (length.isascii() and length.isdigit()) or int(length) > IDENTITY_BYTES:
        return None
    return int(length)


def system_error(path: object, error: OSError) -> SourceError:
    """Return the one-sentence error for what the operating system said about `path`."""
    return SourceError(f"{path}: cannot be read: {error.strerror or error}")


class ByteStream(ABC):
    """Bytes in order, from a file or a pipe.

    Attributes
    ----------
    offset
        How many decompressed bytes precede the next one `read` returns.
    ended
        Whether no byte will ever follow.
    torn
        Whether what follows the bytes returned so far was lost, so that a line without its end is not a line.

    """

    offset: int = 0
    ended: bool = False
    torn: bool = False

    @abstractmethod
    def read(self, deadline: float) -> bytes:
        """Return the next bytes, some 100 KB at most; empty when `ended` or when none came until `deadline`.

        `deadline` is a time of `time.monotonic`. Raises SourceError when the stream cannot be read on, and again at
        every later call.
        """

    @abstractmethod
    def name_at(self, offset: int) -> str:
        """Return what `Position.stream` is for a position at `offset`, which was read already."""

    @abstractmethod
    def seek(self, offset: int) -> None:
        """Go on reading at `offset`. Raises SourceError where the stream is shorter."""

    @abstractmethod
    def close(self) -> None:
        """Release the file."""


class File(ByteStream):
    """A file with a beginning to know it by.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    SourceError
        When there is no such file, it is not a regular file, or it cannot be read.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise SourceError(f"{path}: there is no such file") from None
        except OSError as error:
            raise system_error(path, error) from None
        mode = self.stat().st_mode
        if not stat.S_ISREG(mode):
            self.close()
            kind = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file; a pipe is read as path '-'"
            raise SourceError(f"{path}: {kind}")

    def stat(self) -> os.stat_result:
        """Return the status of the open file, which may have another name by now."""
        return os.fstat(self._descriptor)

    @abstractmethod
    def beginning(self, length: int = IDENTITY_BYTES) -> bytes:
        """Return the first `length` decompressed bytes, or as many as there are; `offset` is as before."""

    @abstractmethod
    def reaches(self, offset: int) -> bool:
        """Tell whether there are `offset` decompressed bytes; it may move to `offset` to find out."""

    def matches(self, position: Position) -> bool:
        """Tell whether this is the file, and still as long, in which `position` was taken."""
        length = identity_length(position.stream)
        if length is None or identity(self.beginning(length)) != position.stream:
            return False
        return self.reaches(position.offset)

    def verify(self, position: Position) -> None:
        """Raise SourceError, saying why, where the file does not match `position`."""
        remedy = "put the old file back, or start anew with --fresh"
        length = identity_length(position.stream)
        if length is None:
            raise SourceError(
                f"{self.path}: the position to resume at is not one in a file ({position.stream}): "
                "use the source it came from, or start anew with --fresh"
            )
        beginning = self.beginning(length)
        if len(beginning) == length and identity(beginning) != position.stream:
            raise SourceError(
                f"{self.path}: the file was replaced since the checkpoint, its first {length:,} bytes differ: {remedy}"
            )
        if len(beginning) < length or not self.reaches(position.offset):
            raise SourceError(
                f"{self.path}: the file is shorter than the position to resume at, {position.offset:,} bytes; "
                f"it was truncated or replaced: {remedy}"
            )

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class PlainFile(File):
    """An uncompressed file, read up to its end as it stands at that moment.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a,b")
    ...     file.flush()
    ...     stream = PlainFile(Path(file.name))
    ...     stream.read(deadline=0), stream.offset, stream.read(deadline=0), stream.ended
    (b'a,b', 3, b'', True)
    >>> stream.close()

    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._name = identity(self.beginning())

    def read(self, deadline: float) -> bytes:  # noqa: ARG002 - a file never has to be awaited
        """Return the next bytes; see `ByteStream.read`."""
        try:
            block = os.read(self._descriptor, BLOCK_BYTES)
        except OSError as error:
            raise system_error(self.path, error) from None
        self.offset += len(block)
        self.ended = not block
        return block

    def name_at(self, offset: int) -> str:  # noqa: ARG002 - the whole beginning was there when the file was opened
        """Return the identity of the file."""
        return self._name

    def beginning(self, length: int = IDENTITY_BYTES) -> bytes:
        """Return the first bytes as they stand now; see `File.beginning`."""
        try:
            return os.pread(self._descriptor, length, 0)
        except OSError as error:
            raise system_error(self.path, error) from None

    def reaches(self, offset: int) -> bool:
        """Tell whether the file is at least `offset` bytes long."""
        return self.size >= offset

    @property
    def size(self) -> int:
        """The length of the file in bytes, now."""
        return self.stat().st_size

    def seek(self, offset: int) -> None:
        """Go on at `offset`; see `ByteStream.seek`."""
        self.offset = os.lseek(self._descriptor, offset, os.SEEK_SET)
        self.ended = False


class StandardInput(ByteStream):
    """Standard input, which can be neither sought nor resumed.

    Its end is the end of the stream: as long as a writer holds the pipe open, more may come.
    """

    def __init__(self) -> None:
        self._descriptor = 0

    def read(self, deadline: float) -> bytes:
        """Return what is there, waiting for it until `deadline`; see `ByteStream.read`."""
        try:
            if not select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return b""
            block = os.read(self._descriptor, BLOCK_BYTES)
        except OSError as error:
            raise system_error("standard input", error) from None
        self.offset += len(block)
        self.ended = not block
        return block

    def name_at(self, offset: int) -> str:  # noqa: ARG002 - a pipe has no beginning to know it by
        """Return ``"-"``."""
        return STANDARD_INPUT

    def seek(self, offset: int) -> None:
        """Raise SourceError: what was read is gone."""
        raise SourceError(f"standard input cannot be resumed at byte {offset:,}: start anew with --fresh")

    def close(self) -> None:
        """Leave standard input open: it is not ours."""
