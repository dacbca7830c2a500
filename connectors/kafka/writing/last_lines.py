"""The last line of each partition of a source: with it, a run that starts from an older checkpoint skips lines."""

from __future__ import annotations

import json
from collections.abc import Iterable

from streamkernel.connectors.ports import Position

__all__ = ["LastLines"]

# A broker takes 4096 bytes of metadata with an offset.
_MOST_CHARACTERS = 3500


class LastLines:
    """The greatest offset of the lines of each partition of a source.

    It is known for topics and journals only: the name of a place in a file changes as the file grows.

    Examples
    --------
    >>> last = LastLines()
    >>> last.add([Position("cluster/clicks/1", 0, 7), Position("cluster/clicks/1", 0, 9)])
    >>> last.to_text()
    '[["cluster/clicks/1",0,9]]'
    >>> again = LastLines.from_text(last.to_text())
    >>> again.skips(Position("cluster/clicks/1", 0, 8)), again.skips(Position("cluster/clicks/1", 0, 10))
    (True, False)

    """

    def __init__(self, known: bool = True) -> None:
        self._offsets: dict[tuple[str, int], int] = {}
        self._known = known

    @classmethod
    def from_text(cls, text: str) -> LastLines:
        """Read what `to_text` returned; raises `ValueError` or `TypeError` where it is none."""
        if not text:
            return cls(known=False)
        last = cls()
        last.add(Position(str(stream), int(partition), int(offset)) for stream, partition, offset in json.loads(text))
        return last

    def to_text(self) -> str:
        """Return the positions as JSON; empty where they are not known, or too many."""
        places = [[*key, offset] for key, offset in sorted(self._offsets.items())]
        text = json.dumps(places, separators=(",", ":"))
        return text if self._known and len(text) <= _MOST_CHARACTERS else ""

    def add(self, positions: Iterable[Position]) -> None:
        """Take in the positions of lines."""
        for stream, partition, offset in positions:
            self._known &= "/" in stream
            if self._known:
                self._offsets[stream, partition] = max(offset, self._offsets.get((stream, partition), offset))

    def skips(self, position: Position) -> bool:
        """Return whether a line is up to the last one of its partition; the first line after it ends the skipping."""
        last = self._offsets.get(position[:2])
        if last is None:
            return False
        if position.offset > last:
            del self._offsets[position[:2]]
            return False
        return True
