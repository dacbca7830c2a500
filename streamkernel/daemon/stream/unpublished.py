"""The lines of an output that nobody else can read yet, and since when their records wait for that."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

__all__ = ["UnpublishedLines"]

# Writing a file, or the end of a transaction, takes some time itself: it is begun before the lines are due.
_BEGUN_AFTER = 0.75


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
