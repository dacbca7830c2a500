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

from connectors.files.bytes import BLOCK_BYTES, IDENTITY_BYTES, File, PlainFile, identity
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
        self._name = identity(self._beginning)

    def _rewind(self) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        file = os.fdopen(self._descriptor, "rb", closefd=False)
        self._reader: _Reader = gzip.GzipFile(fileobj=file) if self.path.suffix == ".gz" else _ZstdReader(file)
        self._ahead = b""
        self._failure = None
        self.ended = False
        self.offset = 0

    def _read_beginning(self) -> bytes:
        pieces: list[bytes] = []
        length = 0
        while length < IDENTITY_BYTES and not self.ended:
            try:
                pieces.append(self.read(time.monotonic()))
            except SourceError:
                if not pieces:
                    raise
                # What precedes the damage is still to be delivered: it is an error when reading gets there.
                break
            length += len(pieces[-1])
        self._ahead = b"".join(pieces)
        self.ended = False
        self.offset = 0
        return self._ahead[:IDENTITY_BYTES]

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

    def name_at(self, offset: int) -> str:  # noqa: ARG002 - the whole beginning was there when the file was opened
        """Return the identity of the file."""
        return self._name

    def beginning(self, length: int = IDENTITY_BYTES) -> bytes:
        """Return the first decompressed bytes; see `File.beginning`."""
        return self._beginning[:length]

    def reaches(self, offset: int) -> bool:
        """Decompress up to `offset`, and tell whether there is that much."""
        if offset < self.offset:
            self._rewind()
        while self.offset < offset:
            block = self.read(time.monotonic())
            if not block:
                return False
            excess = self.offset - offset
            if excess > 0:
                self._ahead = block[-excess:]
                self.offset = offset
        return True

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
