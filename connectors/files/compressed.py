"""Files in .gz and .zst as streams of decompressed bytes.

Reaching an offset means decompressing everything before it: resuming late in a large compressed file takes as long
as reading it up to there.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import BinaryIO

import zstandard

from streamkernel.connectors.files.bytes import BLOCK_BYTES, File, PlainFile
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SourceError

SUFFIXES = (".gz", ".zst")
# A zstd block of 4 bytes may stand for 128 KB: fed in slices of this size, no hostile file decompresses to more than
# 16 MB at once.
ZSTD_SLICE_BYTES = 512


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

    SourceError where it cannot be opened, or not even its first byte can be decompressed. Where the data end early or
    are damaged further on, `read` raises after every byte before that place was returned.
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
        # Decompressed bytes that are to be read again.
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

    def _take(self, length: int) -> bytes:
        """Return the next bytes, so many or as many as there are."""
        pieces = []
        while length > 0 and (block := self.read(deadline=0.0)):
            self._ahead = block[length:]
            self.offset -= len(self._ahead)
            pieces.append(block[:length])
            length -= len(pieces[-1])
        return b"".join(pieces)

    def read_at(self, offset: int, length: int) -> bytes:
        """Decompress up to `offset`, and return the bytes from there on; see `File.read_at`."""
        if not self._reach(offset):
            return b""
        found = self._take(length)
        self._ahead = found + self._ahead
        self.offset, self.ended = offset, False
        return found

    def _reach(self, offset: int) -> bool:
        """Decompress up to `offset`, and tell whether there is that much."""
        if offset < self.offset:
            self._rewind()
        while self.offset < offset and self._take(min(offset - self.offset, BLOCK_BYTES)):
            pass
        self.ended = False
        return self.offset == offset

    def seek(self, offset: int) -> None:
        """Go on at `offset`, decompressing everything before it; see `ByteStream.seek`."""
        if not self._reach(offset):
            raise SourceError(f"{self.path}: the file is shorter than {offset:,} decompressed bytes")


def open_file(path: Path) -> File:
    """Open a file by its name: compressed where it ends in .gz or .zst, else plain; SourceError where that fails."""
    return CompressedFile(path) if path.suffix in SUFFIXES else PlainFile(path)
