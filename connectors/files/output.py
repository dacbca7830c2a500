"""The sink of lines in a file, which are made durable, and cut off again after a restart."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from streamkernel.connectors.files.bytes import SUFFIXES
from streamkernel.connectors.files.existing import (
    STANDARD_OUTPUT,
    Existing,
    OpenFile,
    find_names,
    find_problem,
    is_special,
    open_output,
    set_aside,
    verify_unchanged,
)
from streamkernel.connectors.files.mark import FileMark
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import Mark, Position, Sink, SinkError

BUFFER_BYTES = 2**18
PIECE_BYTES = 2**20
# How long a reader may take for a page before what is for it waits elsewhere. A stop tries several times, and must be
# over in ten seconds.
PATIENCE_MILLISECONDS = 300


class LineSink(Sink):
    """A file or standard output that lines are appended to, under a lock.

    Bytes that the system refuses (no space left, say) stay in memory. The next call tries again from the very byte it
    stopped at. The parameters are those of `streamkernel.connectors.files.sinks.JsonLinesSink`.
    """

    def __init__(self, path: str | PathLike[str], existing: Existing = "refuse") -> None:
        self.path = Path(path)
        self.existing: Existing = existing
        self._standard = str(path) == STANDARD_OUTPUT
        self._file: OpenFile | None = None
        self._reset()

    def _reset(self) -> None:
        self._buffer = bytearray()
        self._compressor: zlib._Compress | zstandard.ZstdCompressionObj | None = None
        self._durable: int | None = None
        self._lost = ""
        self._n_unpublished = 0

    def open(self, mark: Mark | None = None) -> None:
        """Open the file, or cut it to the length in `mark` and continue; see `Sink.open`.

        Raises
        ------
        SinkError
            Also where the file is not the one of the mark, has content though there is no mark (as `existing` says),
            or is locked: another sink writes to it.

        """
        self.close()
        self._reset()
        with self._system_errors():
            special = OpenFile(-1, special=True)
            self._file = special if self._standard else open_output(self.path, mark, self.existing)
        if self._file.torn:
            self._take(b"\n")

    def find_problem(self, mark: Mark | None = None) -> None:
        """Raise the error that `open` would, without opening the file for writing; see `Sink.find_problem`."""
        find_problem(self.path, mark, self.existing)

    def find_problem_anew(self, mark: Mark | None, before: Mark | None = None, *, stays: bool = False) -> None:
        """Raise the error that `set_aside` and `open` would, changing nothing; see `Sink.find_problem_anew`."""
        if stays or self.existing != "refuse" or find_names(self.path, mark, before) is None:
            find_problem(self.path, None, self.existing, alone=True)

    def set_aside(self, mark: Mark | None, before: Mark | None = None) -> str:
        """Rename the file to one that ends in .old, unless `existing` says otherwise; see `Sink.set_aside`."""
        return set_aside(self.path, mark, before) if self.existing == "refuse" else ""

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position] = ()) -> None:  # noqa: ARG002
        """Take lines; see `Sink.write`. Standard output and pipes are given them at once."""
        data, n = self._encode(lines), len(lines)
        self._n_unpublished = self.unpublished + n
        self._take(data)

    @abstractmethod
    def _encode(self, lines: Sequence[Mapping[str, Any]]) -> bytes | bytearray:
        """Return the bytes of lines in the file."""

    def _take(self, data: bytes | bytearray) -> None:
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
        """Write the buffer without waiting for the reader of a pipe; see `Sink.publish`.

        A compressed file stays as it is until the next flush: the ends of its members decide how well it is
        compressed, and must not depend on the clock.
        """
        file = self._opened()
        if self._compressor is None:
            with self._system_errors(), suppress(BlockingIOError):
                self._drain(file, patience=0)

    @property
    def unpublished(self) -> int:
        """How many lines are not in the file, or cannot be decompressed yet."""
        return self._n_unpublished if self._buffer or self._compressor is not None else 0

    def flush(self) -> dict[str, Any] | None:
        """Make the lines durable and return the mark of the file; None for standard output and the like.

        A compressed file ends a member (.gz) or a frame (.zst) here, so that it can be cut at this length. Raises
        SinkError also where others renamed, removed, cut or wrote the file since it was opened: the mark would be wrong
        for the file of that name. After the disk lost data once, it raises every time.
        """
        file = self._opened()
        with self._system_errors():
            self._sync(file)
            if file.special:
                return None
            verify_unchanged(self.path, file)
            return FileMark.of(file.descriptor, file.length)._asdict()

    @property
    def waiting_bytes(self) -> int:
        """How many bytes wait in memory."""
        return len(self._buffer)

    @property
    def exactly_once(self) -> bool:
        """True for a file, compressed or not; standard output, pipes and devices are at-least-once."""
        return not is_special(self.path)

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
            self._file = None

    def _opened(self) -> OpenFile:
        if self._file is None:
            raise SinkError(f"{self.path}: the sink is not open")
        return self._file

    def _new_compressor(self) -> zlib._Compress | zstandard.ZstdCompressionObj | None:
        if self.path.suffix not in SUFFIXES:
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
            self._sync_to_disk(file.descriptor)
            self._durable = file.length

    def _sync_to_disk(self, descriptor: int) -> None:
        """Make what was written durable; once that fails, it fails every time.

        The system reports a failed write once: a second `fsync` would succeed, and write nothing.
        """
        if not self._lost:
            try:
                os.fsync(descriptor)
            except OSError as error:
                self._lost = os_reason(error)
        if self._lost:
            raise SinkError(
                f"{self.path}: did not reach the disk ({self._lost}): lines since the last checkpoint may be missing. "
                "Repair the disk and start again: the run continues from that checkpoint"
            )

    def _drain(self, file: OpenFile, patience: int = PATIENCE_MILLISECONDS) -> None:
        while self._buffer:
            # A piece at a time: much may wait, and a full disk is asked again and again.
            piece = bytes(memoryview(self._buffer)[:PIECE_BYTES])
            taken = self._write_some(file, piece, patience)
            del self._buffer[:taken]
            file.length += taken

    def _write_some(self, file: OpenFile, data: bytes, patience: int) -> int:
        if not self._standard:
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
            name = "standard output" if self._standard else self.path
            why = "it has no reader" if isinstance(error, BlockingIOError) else os_reason(error)
            raise SinkError(f"{name}: cannot be written: {why}") from None


def write_to_pipe(descriptor: int, data: bytes, patience: int = PATIENCE_MILLISECONDS) -> int:
    """Write to a descriptor of whatever kind, without being held up by who reads it; return how many bytes it took.

    Fewer than all where the reader is too slow; BlockingIOError where a pipe takes nothing for the given milliseconds,
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
