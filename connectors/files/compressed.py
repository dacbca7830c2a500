"""Files in .gz and .zst as streams of decompressed bytes.

Reaching an offset means decompressing everything before it: resuming late in a large compressed file takes as long
as reading it up to there.
"""

from __future__ import annotations

import gzip
import os
import time
import zlib
from pathlib import Path
from typing import BinaryIO, Protocol

import zstandard

from connectors.files.bytes import BLOCK_BYTES, File, PlainFile
from connectors.files.identity import Head
from connectors.ports import SourceError

SUFFIXES = (".gz", ".zst")
# A zstd block of 4 bytes may stand for 128 KB: fed in slices of this size, no hostile file decompresses to more than
# 16 MB at once.
ZSTD_SLICE_BYTES = 512


class _Reader(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _ZstdReader:
    """The frames of a .zst file in order; unlike zstandard's own readers it notices a frame that is cut short."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._input = b""
        self._used = 0
        self._frame: zstandard.ZstdDecompressionObj | None = None

    def read1(self, size: int, /) -> bytes:  # noqa: ARG002 - a slice of the input bounds the output
        while True:
            if self._used == len(self._input):
                self._input, self._used = self._file.read(2**14), 0
                if not self._input:
                    if self._frame is not None:
                        raise EOFError
                    return b""
            piece = self._input[self._used : self._used + ZSTD_SLICE_BYTES]
            self._used += len(piece)
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            data = self._frame.decompress(piece)
            if self._frame.eof:
                self._used -= len(self._frame.unused_data)
                self._frame = None
            if data:
                return data


class CompressedFile(File):
    """A file whose name ends in .gz or .zst, of one or several members or frames.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    SourceError
        When the file cannot be opened, or not even its first byte can be decompressed. Where the data end early or
        are damaged further on, `read` raises after every byte before that place was returned.

    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._failure: str | None = None
        self._ahead = b""
        try:
            self._rewind()
            self._beginning = self._read_beginning()
        except SourceError:
            self.close()
            raise

    def _rewind(self) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        file = os.fdopen(self._descriptor, "rb", closefd=False)
        self._reader: _Reader = gzip.GzipFile(fileobj=file) if self.path.suffix == ".gz" else _ZstdReader(file)
        self._ahead = b""
        self._failure = None
        self.ended = False
        self.offset = 0

    def _read_beginning(self) -> bytes:
        head = Head()
        pieces: list[bytes] = []
        while not (head.complete or self.ended):
            try:
                pieces.append(self.read(time.monotonic()))
            except SourceError:
                if not pieces:
                    raise
                # What precedes the damage is still to be delivered: it is an error when reading gets there.
                break
            head.add(pieces[-1])
        self._ahead = b"".join(pieces)
        self.ended = False
        self.offset = 0
        return head.data

    def read(self, deadline: float) -> bytes:  # noqa: ARG002 - a file never has to be awaited
        """Return the next decompressed bytes; see `ByteStream.read`."""
        if self._ahead:
            block, self._ahead = self._ahead, b""
        else:
            block = self._decompress()
            self.ended = not block
        self.offset += len(block)
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
                self._failure = f"cannot be read ({error.strerror or error})"
        raise SourceError(
            f"{self.path}: {self._failure}, at byte {self.offset:,} of the decompressed data; "
            "every record before it was delivered"
        )

    def beginning(self, length: int) -> bytes:
        """Return the first decompressed bytes; see `File.beginning`."""
        return self._beginning[:length]

    def before(self, offset: int, length: int) -> bytes:
        """Decompress up to `offset`, and return the last bytes before it; see `File.before`."""
        if not self.reaches(max(0, offset - length)):
            return b""
        return self._take(offset - self.offset)

    def after(self, offset: int, length: int) -> bytes:
        """Decompress up to `offset`, and return the bytes from there on; see `File.after`."""
        if not self.reaches(offset):
            return b""
        found = self._take(length)
        self._ahead = found + self._ahead
        self.offset = offset
        self.ended = False
        return found

    def reaches(self, offset: int) -> bool:
        """Decompress up to `offset`, and tell whether there is that much."""
        if offset < self.offset:
            self._rewind()
        while self.offset < offset and (block := self.read(time.monotonic())):
            self._put_back(block, self.offset - offset)
        return self.offset == offset

    def _take(self, length: int) -> bytes:
        """Return the next bytes, so many or as many as there are."""
        pieces = []
        end = self.offset + length
        while self.offset < end and (block := self.read(time.monotonic())):
            excess = self._put_back(block, self.offset - end)
            pieces.append(block[: len(block) - excess])
        return b"".join(pieces)

    def _put_back(self, block: bytes, excess: int) -> int:
        """Have the end of a block read again, where there is too much of it; return how much that was."""
        if excess <= 0:
            return 0
        self._ahead = block[-excess:]
        self.offset -= excess
        return excess

    def seek(self, offset: int) -> None:
        """Go on at `offset`, decompressing everything before it; see `ByteStream.seek`."""
        if not self.reaches(offset):
            raise SourceError(f"{self.path}: the file is shorter than {offset:,} decompressed bytes")


def open_file(path: Path) -> File:
    """Open a file by its name: compressed where it ends in .gz or .zst, else plain.

    Raises
    ------
    SourceError
        When the file cannot be opened.

    """
    return CompressedFile(path) if path.suffix in SUFFIXES else PlainFile(path)
