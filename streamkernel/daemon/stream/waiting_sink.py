"""A sink that waits for a slow reader of a pipe, as a filter between two programs does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamkernel.connectors.ports import Mark, Position, Sink, SinkError

__all__ = ["WaitingSink"]


class WaitingSink(Sink):
    """A sink in front of another one that tries until the reader of a pipe takes the lines, however long that is.

    Nothing piles up in memory meanwhile, for no more records are read.

    Parameters
    ----------
    sink
        The other one; where it does not take the lines, it keeps them.
    stopped
        Asked while it waits: True ends the waiting with the error.

    """

    def __init__(self, sink: Sink, stopped: Callable[[], bool]) -> None:
        self._sink = sink
        self._stopped = stopped

    def open(self, mark: Mark | None = None) -> None:
        """Open the other sink; see `Sink.open`."""
        self._sink.open(mark)

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position]) -> None:
        """Write lines; see `Sink.write`."""
        try:
            self._sink.write(lines, positions)
        except SinkError as error:
            self._raise_unless_slow(error)
            self.flush()

    def flush(self) -> Mark | None:
        """Write all there is; see `Sink.flush`."""
        while True:
            try:
                return self._sink.flush()
            except SinkError as error:
                self._raise_unless_slow(error)

    def _raise_unless_slow(self, error: SinkError) -> None:
        if self._stopped() or not isinstance(error.__context__, BlockingIOError):
            raise error

    @property
    def exactly_once(self) -> bool:
        """Whether the other sink is."""
        return self._sink.exactly_once

    def close(self) -> None:
        """Close the other sink."""
        self._sink.close()
