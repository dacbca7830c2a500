"""Lines of unknown runs that stand in a topic: are the lines to be written now for the same records?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

from connectors.ports import Position

__all__ = ["Answer", "Earlier"]

_FILE = re.compile(r"(?:labels:)?(\d+):[0-9a-f]{64}")

# How many records behind the first may be named as those of another file: where the first one is the same.
_AS_OTHERS = 1

Place: TypeAlias = tuple[str, int]


@lru_cache(maxsize=64)
def _covered(stream: str) -> int | None:
    """Tell how many bytes of a file its name covers; None of what is no file."""
    found = _FILE.fullmatch(stream)
    return None if found is None else int(found[1])


def _is_begun(position: Position) -> bool:
    """Say whether a position is in the beginning of a file, named by what stands before it there and nothing else."""
    return _covered(position.stream) == position.offset


class Answer(Enum):
    """What is known of a line."""

    NEW = "new"
    THERE = "there"
    UNKNOWN = "unknown"


class Earlier:
    """Finds lines that are for records of the same partition of a source as those that stand in the topic.

    The first record of a file is named by no byte of it, or by a header that many files have, so it has the same name
    in all of them, and where the first records are alike, so has the second; and behind some kilobytes the records of a
    file are named in another way than in its beginning. So the lines behind the first one tell which file it is.

    Parameters
    ----------
    counts
        By partition of a source, how many lines stand there; what is decided is removed from it.

    Examples
    --------
    >>> earlier = Earlier({("cluster/topic/1", 0): 7})
    >>> [earlier.look(Position("cluster/topic/1", partition, 9), list, final=False).name for partition in (0, 1)]
    ['THERE', 'NEW']

    """

    def __init__(self, counts: dict[Place, int]) -> None:
        self._counts = counts
        self._files = any(_covered(stream) is not None for stream, _ in counts)
        self._alike = self._other = False

    def look(self, first: Position, behind: Callable[[], Sequence[Position]], final: bool) -> Answer:
        """Say what is known of a line that is to be written.

        Parameters
        ----------
        first
            The position of its record.
        behind
            Gives those of the lines behind it, in order, as far as they are there.
        final
            Whether no more come for now: then what is not known to be there is new.

        """
        if not self._files or not _is_begun(first):
            return Answer.THERE if first[:2] in self._counts else Answer.NEW
        if self._other:
            return Answer.NEW
        others = behind()
        found = self._found(others)
        whole = {one[:2] for one in others if not _is_begun(one)}
        if len(found) > _AS_OTHERS or found & whole:
            return Answer.THERE
        if whole:
            self._other = True
            return Answer.NEW
        if not final:
            return Answer.UNKNOWN
        if (found and len(found) == len(others)) or (self._alike and self._found([first])):
            return Answer.THERE
        self._alike = bool(self._found([first]))
        self._other = len(others) > len(found)
        return Answer.NEW

    def count(self, first: Position, behind: Callable[[], Sequence[Position]]) -> int:
        """Tell how many lines stand there for the records of a line that is there, and of those behind it."""
        return sum(self._counts[place] for place in self._places(first, behind))

    def accept(self, first: Position, behind: Callable[[], Sequence[Position]]) -> None:
        """Let them be written all the same."""
        for place in self._places(first, behind):
            del self._counts[place]
        self._other = self._other or _is_begun(first)

    def _places(self, first: Position, behind: Callable[[], Sequence[Position]]) -> set[Place]:
        return self._found([first, *behind()] if _is_begun(first) else [first])

    def _found(self, positions: Iterable[Position]) -> set[Place]:
        return {one[:2] for one in positions if one[:2] in self._counts}
