"""Bytes into a file so that they can be made durable, and cut off again after a restart."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from streamkernel.connectors.durable import Appended
from streamkernel.connectors.file_system import file_id
from streamkernel.connectors.files.bytes import STANDARD_INPUT, SUFFIXES
from streamkernel.connectors.files.existing import Existing, OpenFile, is_special, open_output, verify_unchanged
from streamkernel.connectors.files.mark import FileMark, digest
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import Mark, SinkError

BUFFER_BYTES = 2**18
PIECE_BYTES = 2**20
STANDARD_OUTPUT = STANDARD_INPUT
# How long a reader may take for a page before what is for it waits elsewhere. A stop tries several times, and must be
# over in ten seconds.
PATIENCE_MILLISECONDS = 300


class OutputFile:
    """A file that is appended to under a lock, or standard output.

    What the system refuses to take (no space left, say) stays in memory, and the next call tries again from the very
    byte it stopped at. The parameters are those of `streamkernel.connectors.files.sinks.JsonLinesSink`.
    """

    def __init__(self, path: str | PathLike[str], existing: Existing = "refuse") -> None:
        self.path = Path(path)
        self.existing: Existing = existing
        self.standard = str(path) == STANDARD_OUTPUT
        self._buffer = bytearray()
        self._compressor: zlib._Compress | zstandard.ZstdCompressionObj | None = None
        self._file = self._unopened()
        self._durable: int | None = None
        self._appended = Appended(self.path)

    @property
    def special(self) -> bool:
        """Whether it is standard output, a pipe or a device: what was written there cannot be taken back."""
        return self.standard or is_special(self.path)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait in memory."""
        return len(self._buffer)

    @property
    def published(self) -> bool:
        """Whether all that was written is where others can read it."""
        return not self._buffer and self._compressor is None

    def open(self, mark: Mark | None) -> OpenFile:
        """Open the file, or go on where `mark` says, and return it; see `Sink.open`."""
        self.close()
        self._buffer.clear()
        self._compressor = None
        self._durable = None
        self._appended = Appended(self.path)
        if not self.standard:
            with self._system_errors():
                self._file = open_output(self.path, mark, self.existing)
        file = self._opened()
        if file.torn:
            self.write(b"\n")
        return file

    def write(self, data: bytes | bytearray) -> None:
        """Take bytes, which stay in memory until they are worth a call, or whoever reads a pipe is ready for them."""
        file = self._opened()
        if self._compressor is None:
            self._compressor = self._new_compressor()
        self._buffer += data if self._compressor is None else self._compressor.compress(data)
        if len(self._buffer) >= BUFFER_BYTES:
            with self._system_errors():
                self._drain(file)
        elif file.special:
            self.publish()

    def publish(self) -> None:
        """Give what is in memory to the system, without waiting for the reader of a pipe; see `Sink.publish`.

        A compressed file stays as it is until the next flush: where its members end says how well it is compressed, and
        must not hang on the clock.
        """
        file = self._opened()
        if self._compressor is None:
            with self._system_errors(), suppress(BlockingIOError):
                self._drain(file, patience=0)

    def flush(self) -> dict[str, Any] | None:
        """Make what was written durable and return the mark of the file; None for standard output and the like.

        A compressed file ends a member (.gz) or a frame (.zst) here, so that it can be cut at this length. Raises
        SinkError also where the file was renamed, removed, cut or written to by others since it was opened: a mark
        would speak of lines that are not in the file of that name. What the disk lost once, it raises every time.
        """
        file = self._opened()
        with self._system_errors():
            self._sync(file)
            if file.special:
                return None
            known = file_id(file.descriptor)
            verify_unchanged(self.path, file)
        return FileMark(file.length, digest(file.head), digest(file.tail), known)._asdict()

    def close(self) -> None:
        """Flush and close; closing twice does nothing."""
        if self._file is None:
            return
        try:
            with self._system_errors():
                self._sync(self._file)
        finally:
            if self._file.descriptor >= 0:
                os.close(self._file.descriptor)
            self._file = self._unopened()

    def _unopened(self) -> OpenFile | None:
        return OpenFile(-1, special=True) if self.standard else None  # standard output is always there

    def _opened(self) -> OpenFile:
        if self._file is None:
            raise SinkError(f"{self.path}: the sink is not open")
        return self._file

    def _new_compressor(self) -> zlib._Compress | zstandard.ZstdCompressionObj | None:
        if self.standard or self.path.suffix not in SUFFIXES:
            return None
        if self.path.suffix == ".gz":
            # zlib writes no time into the header: the same lines make the same bytes.
            return zlib.compressobj(wbits=31)
        return zstandard.ZstdCompressor(write_checksum=True).compressobj()

    def _sync(self, file: OpenFile) -> None:
        if self._compressor is not None:
            self._buffer += self._compressor.flush()
            self._compressor = None
        self._drain(file)
        # Waiting for the disk costs milliseconds, and most checkpoints find no new dead letter.
        if not file.special and file.length != self._durable:
            self._appended.sync(file.descriptor)
            self._durable = file.length

    def _drain(self, file: OpenFile, patience: int = PATIENCE_MILLISECONDS) -> None:
        while self._buffer:
            # A piece at a time: much may wait, and a full disk is asked again and again.
            piece = bytes(memoryview(self._buffer)[:PIECE_BYTES])
            taken = self._write_some(file, piece, patience)
            del self._buffer[:taken]
            file.note(piece[:taken])

    def _write_some(self, file: OpenFile, data: bytes, patience: int) -> int:
        if not self.standard:
            return write_to_pipe(file.descriptor, data, patience)
        # Looked up each time: it may be redirected. The raw file below keeps no bytes of its own, which would be
        # written a second time at exit when the reader has gone.
        sys.stdout.flush()
        stream = cast("IO[bytes]", sys.stdout.buffer)
        try:
            descriptor = stream.fileno()
        except OSError:  # no file of the system
            return stream.write(data)
        return write_to_pipe(descriptor, data, patience)

    @contextmanager
    def _system_errors(self) -> Iterator[None]:
        """Raise SinkError, in one sentence, for what the system refuses."""
        try:
            yield
        except OSError as error:
            name = "standard output" if self.standard else self.path
            why = "it has no reader" if isinstance(error, BlockingIOError) else os_reason(error)
            raise SinkError(f"{name}: cannot be written: {why}") from None


def write_to_pipe(descriptor: int, data: bytes, patience: int = PATIENCE_MILLISECONDS) -> int:
    """Write to a descriptor of whatever kind, without being held up by who reads it; return how many bytes it took.

    Fewer than all where the reader is too slow; BlockingIOError where a pipe takes nothing for so many milliseconds,
    and any OSError of the system.
    """
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.write(descriptor, data)
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    taken = 0
    try:
        while taken < len(data):
            if not poll.poll(patience):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            # A pipe that is ready takes this much at once; more could have to wait.
            taken += os.write(descriptor, data[taken : taken + select.PIPE_BUF])
    except OSError:
        if not taken:
            raise
        # The next call meets it again.
    return taken
