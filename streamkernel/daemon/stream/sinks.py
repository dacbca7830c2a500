"""The sinks of the daemon, and what happens when a disk or a broker does not take their lines."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from streamkernel.connectors.ports import Mark, Position, Sink, SinkError
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.retry import Backoff, may_pass

__all__ = ["Sinks", "UnpublishedLines"]

_log = logging.getLogger(__name__)

# Lines that are not taken wait in memory, as learning continues. Short ones take more of it than they have bytes.
_MOST_WAITING = 100_000
_MOST_WAITING_BYTES = 2**26
# A checkpoint holds the lines that it shows.
_MOST_COMMIT_BYTES = 2**24
# How long the sinks do without a turn while lines are due and on their way.
_TURN_SECONDS = 0.02
# Writing a file, or the end of a transaction, takes some time itself: it is begun before the lines are due.
_BEGUN_AFTER = 0.75


class Sinks:
    """The sinks of the daemon by their key in the configuration.

    A sink keeps the lines that a disk refuses or no broker acknowledges, so learning continues; only when very many
    wait the daemon must hold. As a context they are closed at its end.

    Parameters
    ----------
    sinks
        Open sinks.
    clock
        Gives seconds, and never goes back.
    max_waiting_bytes
        How many bytes of lines may wait in all sinks together, 64 MiB by default.
    flush_seconds
        By the key of the sink, how long after a record was read others can read its line; a sink that is not named
        shows its lines as it does by itself.
    published
        Called with the key of a sink, a number of seconds and how many lines others can read so long after their
        records were read; None: no call.

    """

    def __init__(
        self,
        sinks: Mapping[str, Sink],
        clock: Callable[[], float] = time.monotonic,
        max_waiting_bytes: int = _MOST_WAITING_BYTES,
        flush_seconds: Mapping[str, float] | None = None,
        published: Callable[[str, float, int], None] | None = None,
    ) -> None:
        self.sinks = dict(sinks)
        self._clock = clock
        self._unpublished = {key: UnpublishedLines(seconds) for key, seconds in (flush_seconds or {}).items()}
        self._published = published or (lambda *_: None)
        self.max_waiting_bytes = max_waiting_bytes
        self._refused: set[str] = set()
        self._hold_logged = False
        self._backoff = Backoff(clock)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of lines wait in all sinks together."""
        return sum(sink.waiting_bytes for sink in self.sinks.values())

    @property
    def full(self) -> bool:
        """Whether so much waits that no more may come."""
        return self.waiting_bytes >= self.max_waiting_bytes or any(
            sink.waiting >= _MOST_WAITING for sink in self.sinks.values()
        )

    def write(
        self,
        lines: Mapping[str, Sequence[Mapping[str, Any]]],
        origins: Mapping[str, Sequence[Position]] | None = None,
        read_at: float | None = None,
    ) -> None:
        """Hand lines to the sinks.

        Parameters
        ----------
        lines
            By the key of the sink.
        origins
            By the key of the sink, where the record of each line begins.
        read_at
            When the records were read, by the clock; None: now.

        Raises
        ------
        SinkError
            Where a sink fails for a reason that will not pass.

        """
        refused = None
        for key, some in lines.items():
            if not (n := len(some)):
                continue
            if key in self._unpublished:
                self._unpublished[key].add(n, self._clock() if read_at is None else read_at)
            try:
                self.sinks[key].write(some, (origins or {}).get(key, ()))
                self._refused.discard(key)
            except SinkError as error:
                self._refused.add(key)
                refused = error
        if refused is not None:
            self._bear(refused)
        self._publish_due()

    def flush(self) -> dict[str, Mark | None]:
        """Make all lines durable, and give the mark of each output.

        Raises
        ------
        SinkError
            Where a sink cannot.

        """
        marks = {key: sink.flush() for key, sink in self.sinks.items()}
        for key in self._unpublished:
            crash.point("published", self._settle(key))
        self._refused.clear()
        self._succeeded()
        return marks

    def commit(self) -> None:
        """Show others the lines of the last `flush`, now that the checkpoint with its marks is durable."""
        for sink in self.sinks.values():
            sink.commit()
        crash.point("committing")

    @property
    def want_checkpoint(self) -> bool:
        """Whether lines that only a checkpoint shows are due, or too many."""
        now = self._clock()
        for key, sink in self.sinks.items():
            size = sink.commit_bytes
            if size is None:
                continue
            due = self._unpublished[key].due_at if key in self._unpublished else None
            if size > _MOST_COMMIT_BYTES or (size and due is not None and due <= now):
                return True
        return False

    def move(self) -> None:
        """Let the sinks do what they can by now for the lines that wait."""
        for key, sink in self.sinks.items():
            if sink.waiting:
                try:
                    sink.write((), ())
                except SinkError as error:
                    self._refused.add(key)
                    self._bear(error)
        self._publish_due()

    def pause(self, most: float) -> float:
        """Return how many seconds the sinks can do without a call of `write` or `move`, at most `most`."""
        dues = [due for lines in self._unpublished.values() if (due := lines.due_at) is not None]
        if not dues:
            return most
        left = min(dues) - self._clock()
        # The longer lines are overdue, the less they hang on a turn: an outage is not watched closely.
        return min(most, max(_TURN_SECONDS, left, -left / 10))

    def _publish_due(self) -> None:
        """Show others the lines that are due."""
        for key, lines in self._unpublished.items():
            due = lines.due_at
            if (
                due is not None
                and due <= self._clock()
                and self.sinks[key].commit_bytes is None
                and not (key in self._refused and self._backoff.waiting)
            ):
                try:
                    self.sinks[key].publish()
                    if not self.sinks[key].unpublished:
                        self._refused.discard(key)
                except SinkError as error:
                    self._refused.add(key)
                    self._bear(error)
            crash.point("published", self._settle(key))

    def _settle(self, key: str) -> int:
        """Note the lines that others can read by now, and return how many are new."""
        now, n_new = self._clock(), 0
        for n_lines, read_at in self._unpublished[key].settle(self.sinks[key].unpublished):
            self._published(key, now - read_at, n_lines)
            n_new += n_lines
        return n_new

    def retry(self) -> None:
        """Try again to write what waits, when it is time."""
        self.move()
        if self.full and not self._hold_logged:
            _log.error("%s bytes of lines wait for an output: the daemon pauses reading", f"{self.waiting_bytes:,}")
            self._hold_logged = True
        if not self._refused or self._backoff.waiting:
            return
        try:
            for key in sorted(self._refused):
                self.sinks[key].flush()
                self._refused.discard(key)
        except SinkError as error:
            self._bear(error)
        else:
            self._succeeded()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close all sinks; SinkError where one cannot end what it holds, unless another error ended the run."""
        refused = []
        for sink in self.sinks.values():
            try:
                sink.close()
            except SinkError as refusal:
                refused.append(refusal)
        first = refused.pop(0) if refused and error is None else None
        for other in refused:
            _log.error("%s", other)
        if first is not None:
            raise first

    def _succeeded(self) -> None:
        if self._backoff.failing:
            _log.info("all lines could be written again")
        self._hold_logged = False
        self._backoff.succeeded()

    def _bear(self, error: SinkError) -> None:
        if not may_pass(error):
            raise error
        if self._backoff.waiting:
            return
        if not self._backoff.failing:
            _log.error("%s; its lines wait in memory until they can be written", error)
        self._backoff.failed()


class UnpublishedLines:
    """A queue of lines, in the order in which they were given to a sink.

    Parameters
    ----------
    flush_seconds
        How long after a record was read its line is to be there for others.

    Examples
    --------
    >>> lines = UnpublishedLines(flush_seconds=1.0)
    >>> lines.add(2, read_at=10.0)
    >>> lines.add(1, read_at=10.5)
    >>> lines.due_at
    10.75
    >>> list(lines.settle(unpublished=2)), lines.due_at
    ([(1, 10.0)], 10.75)
    >>> list(lines.settle(unpublished=0)), lines.due_at
    ([(1, 10.0), (1, 10.5)], None)

    """

    def __init__(self, flush_seconds: float) -> None:
        self._begun_after = _BEGUN_AFTER * flush_seconds
        self._lines: deque[tuple[int, float]] = deque()
        self._n_lines = 0

    def add(self, n_lines: int, read_at: float) -> None:
        """Add lines whose records were read at a time."""
        self._lines.append((n_lines, read_at))
        self._n_lines += n_lines

    @property
    def due_at(self) -> float | None:
        """When to begin to show them to others; None where there are none."""
        return self._lines[0][1] + self._begun_after if self._lines else None

    def settle(self, unpublished: int) -> Iterator[tuple[int, float]]:
        """Remove all but the last lines, and yield how many there were and when their records were read."""
        while self._n_lines > unpublished:
            n_lines, read_at = self._lines.popleft()
            n_left = max(0, n_lines - (self._n_lines - unpublished))
            if n_left:
                self._lines.appendleft((n_left, read_at))
            self._n_lines -= n_lines - n_left
            yield n_lines - n_left, read_at
