"""Files and standard input as streams of decompressed bytes. Offsets always count decompressed bytes."""

from __future__ import annotations

import os
import select
import stat
import time
from abc import ABC, abstractmethod
from pathlib import Path

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SourceError

BLOCK_BYTES = 2**18
STANDARD_INPUT = "-"


def system_error(path: object, error: OSError) -> SourceError:
    """Return the one-sentence error for what the operating system said about `path`."""
    return SourceError(f"{path}: cannot be read: {os_reason(error)}")


class ByteStream(ABC):
    """Bytes in order, from a file or a pipe."""

    offset: int = 0
    """How many decompressed bytes precede the next one `read` returns."""
    ended: bool = False
    """Whether no byte will ever follow."""
    torn: bool = False
    """Whether what follows the bytes returned so far was lost, so that a line without its end is not a line."""

    @abstractmethod
    def read(self, deadline: float) -> bytes:
        """Return the next bytes, some 100 KB at most; empty when `ended` or when none came until `deadline`.

        `deadline` is a time of `time.monotonic`. Raises SourceError when the stream cannot be read on, and again at
        every later call.
        """

    def name_at(self, offset: int) -> str:  # noqa: ARG002 - nobody goes on in most of them
        """Return what `Position.stream` is for a position at `offset`, which was read already."""
        return ""

    def unended_name_at(self, offset: int) -> str:
        """Return what `Position.stream` is for a position after a last line that has no line end."""
        return self.name_at(offset)

    @abstractmethod
    def seek(self, offset: int) -> None:
        """Go on reading at `offset`. Raises SourceError where the stream is shorter."""

    def go_back(self, offset: int) -> bool:  # noqa: ARG002 - most cannot
        """Go on reading at an offset that was read already; False where the stream cannot be read again."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Release the file."""


class File(ByteStream):
    """A file, of which any part can be looked at; SourceError where it is no regular file or cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Not waiting: a pipe under the name would have no writer for ever.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
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
    def read_at(self, offset: int, length: int) -> bytes:
        """Return the `length` bytes from `offset` on, or as many as there are; reading may go on there then."""

    def read_before(self, offset: int, length: int) -> bytes:
        """Return the last `length` bytes before `offset`, or all; fewer where the file is shorter than `offset`."""
        start = max(0, offset - length)
        return self.read_at(start, offset - start)

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class PlainFile(File):
    """An uncompressed file, read up to its end as it stands at that moment.

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

    def read(self, deadline: float) -> bytes:  # noqa: ARG002 - a file never has to be awaited
        """Return the next bytes; see `ByteStream.read`."""
        block = self.read_at(self.offset, BLOCK_BYTES)
        self.offset += len(block)
        self.ended = not block
        return block

    def read_at(self, offset: int, length: int) -> bytes:
        """Return the bytes from `offset` on as they stand now; see `File.read_at`."""
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise system_error(self.path, error) from None

    @property
    def size(self) -> int:
        """The length of the file in bytes, now."""
        return self.stat().st_size

    def seek(self, offset: int) -> None:
        """Go on at `offset`; see `ByteStream.seek`."""
        self.offset = offset
        self.ended = False


class StandardInput(ByteStream):
    """Standard input, which can be neither sought nor resumed.

    Its end is the end of the stream: as long as a writer holds the pipe open, more may come.
    """

    def read(self, deadline: float) -> bytes:
        """Return what is there, waiting for it until `deadline`; see `ByteStream.read`."""
        try:
            if not select.select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return b""
            block = os.read(0, BLOCK_BYTES)
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
        raise SourceError(f"standard input cannot be resumed at byte {offset:,}: start over with --fresh")

    def close(self) -> None:
        """Leave standard input open: it is not ours."""
