"""Files, plain or compressed, as decompressed bytes, which all offsets count.

To reach an offset in a compressed file, everything before it is decompressed.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from pathlib import Path
from typing import BinaryIO

import zstandard

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SourceError

BLOCK_BYTES = 2**18
SUFFIXES = (".gz", ".zst")
# A zstd block of 4 bytes may decompress to 128 KB. With slices of this size, no file decompresses to more than 16 MB at
# once.
ZSTD_SLICE_BYTES = 512


def system_error(path: object, error: OSError) -> SourceError:
    """Return the one-sentence error for what the operating system said about `path`."""
    return SourceError(f"{path}: cannot be read: {os_reason(error)}")


class File:
    """A plain file with random access; SourceError where it is not a regular file or cannot be read.

    Attributes
    ----------
    plain
        Whether it is not compressed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as named:
    ...     _ = named.write(b"a,b")
    ...     named.flush()
    ...     file = open_file(Path(named.name))
    ...     file.read(1), file.read(3), file.read_at(0, 1), file.size
    (b',b', b'', b'a', 3)
    >>> file.close()

    """

    plain = True

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

    def fileno(self) -> int:
        """Return the number of the open file."""
        return self._descriptor

    def stat(self) -> os.stat_result:
        """Return the status of the open file, which may have another name by now."""
        return os.fstat(self._descriptor)

    @property
    def size(self) -> int:
        """The length of the file on the disk, now."""
        return self.stat().st_size

    def read(self, offset: int, most: int = 0) -> bytes:
        """Return the next bytes from `offset` on, a compressed file some 100 KB at once; empty at the end."""
        try:
            return os.pread(self._descriptor, most or BLOCK_BYTES, offset)
        except OverflowError:  # no file is as long
            return b""
        except OSError as error:
            raise system_error(self.path, error) from None

    def read_at(self, offset: int, length: int) -> bytes:
        """Return the `length` bytes from `offset` on, or as many as there are."""
        found = b""
        while len(found) < length and (block := self.read(offset + len(found), length - len(found))):
            found += block
        return found[:length]

    def read_before(self, offset: int, length: int) -> bytes:
        """Return the last `length` bytes before `offset`, or all; fewer where the file is shorter than `offset`."""
        start = max(0, offset - length)
        return self.read_at(start, offset - start)

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _ZstdFrames:
    """The frames of a .zst file in order; unlike zstandard's own readers it notices a frame that is cut short."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._input = b""
        self._frame: zstandard.ZstdDecompressionObj | None = None

    def read1(self, size: int, /) -> bytes:  # noqa: ARG002 - a slice of the input bounds the output
        while self._input or (piece := self._file.read(ZSTD_SLICE_BYTES)):
            piece, self._input = self._input or piece, b""
            frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            data = frame.decompress(piece)
            self._frame = None if frame.eof else frame
            self._input = frame.unused_data
            if data:
                return data
        if self._frame is not None:
            raise EOFError
        return b""


class CompressedFile(File):
    """A file whose name ends in .gz or .zst, of one or several members or frames.

    SourceError where it cannot be opened, or its first byte cannot be decompressed. Where the data end early or are
    damaged further on, `read` returns every byte before that place, and then raises at every call.
    """

    plain = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._rewind()
            self.read(0)
        except SourceError:
            self.close()
            raise

    def _rewind(self) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        file = os.fdopen(self._descriptor, "rb", closefd=False)
        gz = self.path.suffix == ".gz"
        self._reader: gzip.GzipFile | _ZstdFrames = gzip.GzipFile(fileobj=file) if gz else _ZstdFrames(file)
        self._failure = ""
        # The bytes that were decompressed last, and where they begin.
        self._window, self._begin = b"", 0

    def read(self, offset: int, most: int = 0) -> bytes:  # noqa: ARG002 - what is decompressed is at hand
        """Decompress up to `offset`, and return the bytes after it; see `File.read`."""
        if offset < self._begin:
            self._rewind()
        while (end := self._begin + len(self._window)) <= offset:
            block = self._decompress()
            if not block:
                return b""
            self._window, self._begin = block, end
        return self._window[offset - self._begin :]

    def _decompress(self) -> bytes:
        if not self._failure:
            try:
                return self._reader.read1(BLOCK_BYTES)
            except EOFError:
                self._failure = "the compressed data end early, the file is truncated or still being written"
            except (zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
                self._failure = f"the compressed data are damaged ({error})"
            except OSError as error:
                self._failure = f"cannot be read ({os_reason(error)})"
        at = self._begin + len(self._window)
        raise SourceError(f"{self.path}: {self._failure}, at byte {at:,} of the decompressed data")


def open_file(path: Path) -> File:
    """Open a file by its name: compressed where it ends in .gz or .zst, else plain; SourceError where that fails."""
    return CompressedFile(path) if path.suffix in SUFFIXES else File(path)
