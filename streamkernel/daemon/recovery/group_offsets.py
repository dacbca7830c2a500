"""Tells the consumer groups of the sources how far all is saved, also after the marks of transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from streamkernel.connectors.ports import Position, Source

__all__ = ["GroupOffsets"]


class GroupOffsets:
    """The offsets of the groups of a run.

    Parameters
    ----------
    source
        The source of the records.
    report
        Called with the offsets of its partitions where they are other ones than before.

    """

    def __init__(self, source: Source, report: Callable[[Mapping[int, int]], None]) -> None:
        self._source = source
        self._report = report
        self._before: Mapping[int, int] | None = None

    def tell(self, places: Iterable[tuple[Source, Mapping[int, Position]]]) -> None:
        """Tell that all before these positions of the sources is saved."""
        for source, positions in places:
            offsets = source.commit(positions)
            if source is self._source and offsets != self._before:
                self._before = offsets
                self._report(offsets)
