"""Decides whether lines may be appended to a topic that holds lines of runs nothing is known of.

They are refused where they are for records of the same partition of a source. The first record of a file is named by no
byte of it, or by a header that many files have, so it has the same name in all of them, and where the first records are
alike, so has the second; and behind some kilobytes the records of a file are named in another way than in its
beginning. So the lines after the first one tell which file it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

from streamkernel.connectors.kafka.writing.backlog import Backlog
from streamkernel.connectors.ports import Position, SinkError

__all__ = ["Existing", "ExistingLines"]

_log = logging.getLogger(__name__)

Existing = Literal["refuse", "append"]
Place: TypeAlias = tuple[str, int]

_FILE = re.compile(r"(?:labels:)?(\d+):[0-9a-f]{64}")
# How many records after the first may be named as those of another file: where the first one is the same.
_AS_OTHERS = 1
# The beginning of a file has mostly fewer lines, and what is not known by then is not waited for.
_MOST_LOOKED_AT, _HELD_SECONDS = 512, 1.0


@lru_cache(maxsize=64)
def _covered(stream: str) -> int | None:
    """Return how many bytes of a file its name covers; None of what is no file."""
    found = _FILE.fullmatch(stream)
    return None if found is None else int(found[1])


def _is_begun(position: Position) -> bool:
    """Return whether a position is in the beginning of a file, named by what is before it there and nothing else."""
    return _covered(position.stream) == position.offset


class ExistingLines:
    """The lines of unknown runs in a topic, counted by the partition of a source they are for."""

    def __init__(self, existing: Existing, place: str, clock: Callable[[], float]) -> None:
        self._existing = existing
        self._place = place
        self._clock = clock
        self._held_since: float | None = None
        self.found({})

    def found(self, counts: dict[Place, int]) -> None:
        """Take what a session found in the topic; what is decided is removed from it."""
        self._counts = counts
        self._files = any(_covered(stream) is not None for stream, _ in counts)
        self._alike = self._other = False

    def admits(self, backlog: Backlog, hurried: bool) -> bool:
        """Return whether the first line that waits may be sent; False: more must come to tell.

        Raises `SinkError` where lines for such records are there, and may not be appended to. Where it is `hurried`,
        nothing more comes for now.
        """
        first = backlog.queue[0].position
        there = self._is_there(first, backlog, hurried)
        if there is None:
            self._held_since = self._clock() if self._held_since is None else self._held_since
            return False
        self._held_since = None
        if not there:
            return True
        begun = _is_begun(first)
        places = self._found([first, *backlog.behind(_MOST_LOOKED_AT)] if begun else [first])
        sentence = (
            f"{sum(self._counts[place] for place in places):,} of the last lines there are for records of the same "
            f"source, partition {first.partition}, and no checkpoint says which"
        )
        if self._existing == "refuse":
            raise SinkError(
                f"{sentence}: restore their checkpoint directory, name another topic, or set existing: append for "
                "this output, which writes all lines again"
            )
        _log.warning("%s: %s: the topic has them twice from now on (existing: append)", self._place, sentence)
        for place in places:
            del self._counts[place]
        self._other = self._other or begun
        return True

    def _is_there(self, first: Position, backlog: Backlog, hurried: bool) -> bool | None:
        """Return whether lines for the same records are there; None where the lines behind do not tell yet."""
        if not self._files or not _is_begun(first):
            return first[:2] in self._counts
        if self._other:
            return False
        others = backlog.behind(_MOST_LOOKED_AT)
        found = self._found(others)
        whole = {one[:2] for one in others if not _is_begun(one)}
        if len(found) > _AS_OTHERS or found & whole:
            return True
        if whole:
            self._other = True
            return False
        if not (hurried or len(backlog.queue) > _MOST_LOOKED_AT or self._held_for_long()):
            return None
        if (found and len(found) == len(others)) or (self._alike and self._found([first])):
            return True
        self._alike = bool(self._found([first]))
        self._other = len(others) > len(found)
        return False

    def _held_for_long(self) -> bool:
        return self._held_since is not None and self._clock() - self._held_since > _HELD_SECONDS

    def _found(self, positions: Iterable[Position]) -> set[Place]:
        return {one[:2] for one in positions if one[:2] in self._counts}
