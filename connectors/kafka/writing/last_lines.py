"""The last line of each partition of a source: with it, a run that starts from an older checkpoint skips lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from streamkernel.connectors.ports import Position

__all__ = ["LastLines"]

# A broker takes 4096 bytes of metadata with an offset.
_MOST_CHARACTERS = 3500


class LastLines:
    """The offset of the last line of each partition of a source.

    It is known for topics and journals only: the name of a place in a file changes as the file grows. Nor is it known
    once a line had a lower offset than one before it, as a replayed dead letter may have.

    Parameters
    ----------
    offsets
        By stream and partition; None: not known.

    Examples
    --------
    >>> last = LastLines({}).after([Position("cluster/clicks/1", 0, 7), Position("cluster/clicks/1", 0, 9)])
    >>> last.to_text()
    '[["cluster/clicks/1",0,9]]'
    >>> again = LastLines.from_text(last.to_text())
    >>> again.skips(Position("cluster/clicks/1", 0, 8)), again.skips(Position("cluster/clicks/1", 0, 10))
    (True, False)
    >>> last.after([Position("cluster/clicks/1", 0, 3)]).to_text()
    ''

    """

    def __init__(self, offsets: Mapping[tuple[str, int], int] | None) -> None:
        self._offsets = None if offsets is None else dict(offsets)

    @classmethod
    def from_text(cls, text: str) -> LastLines:
        """Read what `to_text` returned; raises `ValueError` or `TypeError` where it is none."""
        if not text:
            return cls(None)
        return cls({(str(stream), int(partition)): int(offset) for stream, partition, offset in json.loads(text)})

    def to_text(self) -> str:
        """Return the offsets as JSON; empty where they are not known, or too many."""
        places = [[*key, offset] for key, offset in sorted((self._offsets or {}).items())]
        text = json.dumps(places, separators=(",", ":"))
        return text if self._offsets is not None and len(text) <= _MOST_CHARACTERS else ""

    def after(self, positions: Iterable[Position]) -> LastLines:
        """Return the offsets once lines at these positions are added."""
        offsets = dict(self._offsets or {})
        known = self._offsets is not None
        for stream, partition, offset, _ in positions:
            known = known and "/" in stream and offset > offsets.get((stream, partition), -1)
            offsets[stream, partition] = offset
        return LastLines(offsets if known else None)

    def skips(self, position: Position) -> bool:
        """Return whether a line is up to the last one of its partition; the first line after it ends the skipping."""
        last = (self._offsets or {}).get(position[:2])
        if self._offsets is None or last is None:
            return False
        if position.offset > last:
            del self._offsets[position[:2]]
            return False
        return True
