"""Files, plain or compressed, and standard input as streams of decompressed bytes, which all offsets count.

To reach an offset in a compressed file, everything before it is decompressed.
"""

from __future__ import annotations

import gzip
import os
import select
import stat
import time
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import BinaryIO

import zstandard

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SourceError

BLOCK_BYTES = 2**18
STANDARD_INPUT = "-"
SUFFIXES = (".gz", ".zst")
# A zstd block of 4 bytes may decompress to 128 KB. With slices of this size, no file decompresses to more than 16 MB at
# once.
ZSTD_SLICE_BYTES = 512


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

    def name_at(self, offset: int) -> str:  # noqa: ARG002 - most are not resumed
        """Return what `Position.stream` is for a position at `offset`, which was read already."""
        return ""

    def unended_name_at(self, offset: int) -> str:
        """Return what `Position.stream` is for a position after a last line that has no line end."""
        return self.name_at(offset)

    @abstractmethod
    def seek(self, offset: int) -> None:
        """Continue at `offset`. Raises SourceError where the stream is shorter."""

    @abstractmethod
    def close(self) -> None:
        """Release the file."""


class File(ByteStream):
    """A file with random access; SourceError where it is not a regular file or cannot be read."""

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
        """Return the `length` bytes from `offset` on, or as many as there are; `read` may continue there then."""

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
    """An uncompressed file, read up to its end at that moment.

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
        """Return the bytes from `offset` on as they are now; see `File.read_at`."""
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise system_error(self.path, error) from None

    @property
    def size(self) -> int:
        """The length of the file in bytes, now."""
        return self.stat().st_size

    def seek(self, offset: int) -> None:
        """Continue at `offset`; see `ByteStream.seek`."""
        self.offset = offset
        self.ended = False


class _ZstdFrames:
    """The frames of a .zst file in order; unlike zstandard's own readers it notices a frame that is cut short."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._input = memoryview(b"")
        self._frame: zstandard.ZstdDecompressionObj | None = None

    def read1(self, size: int, /) -> bytes:  # noqa: ARG002 - a slice of the input bounds the output
        while True:
            if not self._input:
                self._input = memoryview(self._file.read(2**14))
            if not self._input:
                if self._frame is not None:
                    raise EOFError
                return b""
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            piece = self._input[:ZSTD_SLICE_BYTES]
            data = self._frame.decompress(piece)
            unused = 0
            if self._frame.eof:
                unused = len(self._frame.unused_data)
                self._frame = None
            self._input = self._input[len(piece) - unused :]
            if data:
                return data


class CompressedFile(File):
    """A file whose name ends in .gz or .zst, of one or several members or frames.

    SourceError where it cannot be opened, or its first byte cannot be decompressed. Where the data end early or are
    damaged further on, `read` returns every byte before that place, and then raises.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._rewind()
            self.read_at(0, 1)
        except SourceError:
            self.close()
            raise

    def _rewind(self) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        file = os.fdopen(self._descriptor, "rb", closefd=False)
        gz = self.path.suffix == ".gz"
        self._reader: gzip.GzipFile | _ZstdFrames = gzip.GzipFile(fileobj=file) if gz else _ZstdFrames(file)
        self._failure: str | None = None
        # Decompressed bytes that `read` returns next.
        self._ahead = b""
        self.offset = 0

    def read(self, deadline: float) -> bytes:  # noqa: ARG002 - a file never has to be awaited
        """Return the next decompressed bytes; see `ByteStream.read`."""
        block, self._ahead = self._ahead or self._decompress(), b""
        self.offset += len(block)
        self.ended = not block
        return block

    def _decompress(self) -> bytes:
        if self._failure is None:
            try:
                return self._reader.read1(BLOCK_BYTES)
            except EOFError:
                self._failure = "the compressed data end early, the file is truncated or still being written"
            except (zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
                self._failure = f"the compressed data are damaged ({error})"
            except OSError as error:
                self._failure = f"cannot be read ({os_reason(error)})"
        raise SourceError(f"{self.path}: {self._failure}, at byte {self.offset:,} of the decompressed data")

    def read_at(self, offset: int, length: int) -> bytes:
        """Decompress up to `offset`, and return the bytes from there on; see `File.read_at`."""
        found = bytearray()
        if self._reach(offset):
            while len(found) < length and (block := self.read(deadline=0.0)):
                found += block
            self._ahead = bytes(found) + self._ahead
            self.offset, self.ended = offset, False
        return bytes(found[:length])

    def _reach(self, offset: int) -> bool:
        """Decompress up to `offset`, and return whether there is that much."""
        if offset < self.offset:
            self._rewind()
        while self.offset < offset and (block := self.read(deadline=0.0)):
            over = max(0, self.offset - offset)
            self._ahead = block[len(block) - over :]
            self.offset -= over
        self.ended = False
        return self.offset == offset

    def seek(self, offset: int) -> None:
        """Continue at `offset`, after everything before it is decompressed; see `ByteStream.seek`."""
        if not self._reach(offset):
            raise SourceError(f"{self.path}: the file is shorter than {offset:,} decompressed bytes")


def open_file(path: Path) -> File:
    """Open a file by its name: compressed where it ends in .gz or .zst, else plain; SourceError where that fails."""
    return CompressedFile(path) if path.suffix in SUFFIXES else PlainFile(path)


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
