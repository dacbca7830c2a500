"""The lines that are in an output topic already, and are not to be written a second time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from streamkernel.connectors.ports import Position

__all__ = ["Runs", "WrittenLines", "extend"]

Runs: TypeAlias = list[list[Any]]
"""Positions as JSON: ``[stream, partition, [[first, last], ...]]`` for each partition of a source."""


class WrittenLines:
    """Positions of records whose lines were written; each is forgotten once it was asked for.

    Attributes
    ----------
    passed
        By partition of a source, an offset: the lines of it and of all records before were there, and may be removed.
        A partition is forgotten when it was asked for a record after the offset.
    in_order
        Whether lines are written in the order of their records. If not, `passed` says nothing about a single record.

    Examples
    --------
    >>> written = WrittenLines([Position("s", 0, 7), Position("s", 0, 3), Position("s", 0, 4)])
    >>> [written.take(Position("s", 0, offset)) for offset in (2, 3, 3)]
    [False, True, False]
    >>> written.runs()
    [['s', 0, [[4, 4], [7, 7]]]]
    >>> written = WrittenLines(passed={("s", 1): 5})
    >>> [written.take(Position("s", 1, offset)) for offset in (4, 5, 6)]
    [True, True, False]
    >>> WrittenLines(passed={("s", 1): 5}, in_order=False).take(Position("s", 1, 4))
    False

    """

    def __init__(
        self,
        positions: Iterable[Position] = (),
        passed: Mapping[tuple[str, int], int] | None = None,
        *,
        in_order: bool = True,
    ) -> None:
        self._left: dict[tuple[str, int], set[int]] = {}
        self.passed = dict(passed or {})
        self.in_order = in_order
        for stream, partition, offset in positions:
            self._left.setdefault((stream, partition), set()).add(offset)

    def __len__(self) -> int:
        return sum(map(len, self._left.values()))

    def __bool__(self) -> bool:
        return bool(self._left or self.passed)

    def take(self, position: Position) -> bool:
        """Return whether the line of the record at a position was written, and forget it."""
        key, offset = position[:2], position.offset
        left = self._left.get(key, set())
        found = offset in left
        left.discard(offset)
        if not left:
            self._left.pop(key, None)
        last = self.passed.get(key, -1) if self.in_order else -1
        if self.in_order and offset >= last:
            self.passed.pop(key, None)
        return found or offset <= last

    def runs(self) -> Runs:
        """Return what is left, as JSON."""
        left: Runs = []
        for key, offsets in sorted(self._left.items()):
            left.append([*key, []])
            for offset in sorted(offsets):
                extend(left[-1][2], offset)
        return left

    @staticmethod
    def positions(runs: Runs) -> list[Position]:
        """Return the positions of what `runs` returned."""
        return [
            Position(stream, partition, offset)
            for stream, partition, some in runs
            for first, last in some
            for offset in range(first, last + 1)
        ]


def extend(runs: list[list[int]], offset: int) -> None:
    """Add an offset after the runs ``[first, last]`` of others."""
    if runs and runs[-1][1] == offset - 1:
        runs[-1][1] = offset
    else:
        runs.append([offset, offset])
