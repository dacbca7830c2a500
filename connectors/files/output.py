"""Bytes into a file so that they can be made durable, and cut off again after a restart."""

from __future__ import annotations

import os
import sys
import zlib
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import IO, Protocol, cast

import zstandard

from connectors.files.bytes import STANDARD_INPUT
from connectors.files.compressed import SUFFIXES
from connectors.ports import SinkError

BUFFER_BYTES = 2**18
STANDARD_OUTPUT = STANDARD_INPUT


class _Compressor(Protocol):
    def compress(self, data: bytes | bytearray, /) -> bytes: ...
    def flush(self) -> bytes: ...


class Output:
    """A file that is appended to, or standard output.

    What the system refuses to take (no space left, say) stays in memory, and the next call tries again from the very
    byte it stopped at.

    Parameters
    ----------
    path
        A file, whose directory is made where it is missing; compressed where it ends in .gz or .zst; or ``"-"``.

    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = path
        self.standard = str(path) == STANDARD_OUTPUT
        self.compressed = not self.standard and Path(path).suffix in SUFFIXES
        self._buffer = bytearray()
        self._compressor: _Compressor | None = None
        self._descriptor = -1
        self._length = 0
        self._durable: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether bytes can be written."""
        return self.standard or self._descriptor >= 0

    def open(self, length: int | None) -> None:
        """Open anew, or cut to `length` bytes and go on there; see `Sink.open`."""
        self._buffer.clear()
        self._compressor = None
        self._durable = None
        if self.standard:
            return
        path = Path(self.path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(path, flags | (os.O_CREAT if length is None else 0), 0o666)
            size = os.fstat(self._descriptor).st_size
            if length is not None and size < length:
                raise SinkError(
                    f"{path}: the file holds {size:,} bytes, fewer than the {length:,} recorded at the checkpoint: "
                    "put it back, or start anew with --fresh"
                )
            if size:
                os.ftruncate(self._descriptor, length or 0)
            self._length = length or 0
            _make_name_durable(path)
        except FileNotFoundError:
            raise SinkError(
                f"{path}: there is no such file, and {length:,} bytes of it are recorded at the checkpoint: "
                "put it back, or start anew with --fresh"
            ) from None
        except OSError as error:
            self._release()
            raise self._failed(error) from None
        except SinkError:
            self._release()
            raise

    def write(self, data: bytes | bytearray) -> None:
        """Take bytes, most of which stay in memory until there are enough to be worth a call."""
        if not self.is_open:
            raise SinkError(f"{self.path}: the sink is not open")
        if self.compressed:
            if self._compressor is None:
                self._compressor = self._new_compressor()
            data = self._compressor.compress(data)
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            self._drain()

    def flush(self) -> int | None:
        """Make what was written durable and return the length of the file; None for standard output.

        A compressed file ends a member (.gz) or a frame (.zst) here, so that it can be cut at this length.
        """
        if not self.is_open:
            raise SinkError(f"{self.path}: the sink is not open")
        if self._compressor is not None:
            self._buffer += self._compressor.flush()
            self._compressor = None
        self._drain()
        if self.standard:
            return None
        # Waiting for the disk costs milliseconds, and most checkpoints find no new dead letter.
        if self._length != self._durable:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                raise self._failed(error) from None
            self._durable = self._length
        return self._length

    def close(self) -> None:
        """Flush and close; closing twice does nothing."""
        if self.is_open:
            try:
                self.flush()
            finally:
                self._release()

    def _release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _new_compressor(self) -> _Compressor:
        if Path(self.path).suffix == ".gz":
            # zlib writes no time into the header: the same lines make the same bytes.
            return cast("_Compressor", zlib.compressobj(wbits=31))
        return zstandard.ZstdCompressor(write_checksum=True).compressobj()

    def _drain(self) -> None:
        try:
            while self._buffer:
                taken = self._write_some(bytes(self._buffer))
                del self._buffer[:taken]
                self._length += taken
        except OSError as error:
            raise self._failed(error) from None

    def _write_some(self, data: bytes) -> int:
        if not self.standard:
            return os.write(self._descriptor, data)
        # Looked up each time: it may be redirected. The raw file below keeps no bytes of its own, which would be
        # written a second time at exit when the reader has gone.
        sys.stdout.flush()
        stream = cast("IO[bytes]", sys.stdout.buffer)
        return getattr(stream, "raw", stream).write(data) or 0

    def _failed(self, error: OSError) -> SinkError:
        name = "standard output" if self.standard else self.path
        return SinkError(f"{name}: cannot be written: {error.strerror or error}")


def _make_name_durable(path: Path) -> None:
    # Some file systems cannot sync a directory, and lose a name only with the whole machine.
    with suppress(OSError):
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
