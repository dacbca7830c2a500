"""A merge of two sources: a record, a label, a record, a label."""

from __future__ import annotations

from itertools import chain

from streamkernel.connectors.ports import Record, Source
from streamkernel.daemon.base.events import LabelRecord

__all__ = ["MergedSources"]

# Asked of each source at once, whatever the length of the chunks.
_LOOKAHEAD = 512
# A source that filled its last poll has more; the merge waits for it a moment.
_PATIENCE = 0.02


class MergedSources:
    """A merge of two sources, whose records are handed out in turn.

    After a record comes a label, after a label a record; where one source has nothing, the other one continues. Of two
    files that end, the order is always the same, however they are polled, and wherever a run was stopped and went on.

    Parameters
    ----------
    records, labels
        The sources, open.
    label_next
        Whether a label comes first.

    Examples
    --------
    >>> from streamkernel.connectors.memory import MemorySource
    >>> records, labels = MemorySource([({"n": n}, None) for n in range(3)]), MemorySource([({}, "yes")])
    >>> both = MergedSources(records, labels)
    >>> [type(record).__name__ for _ in range(2) for record in both.poll(10, timeout=0)]
    ['Record', 'LabelRecord', 'Record', 'Record']

    """

    def __init__(self, records: Source, labels: Source, label_next: bool = False) -> None:
        self._records = _Input(records, Record)
        self._labels = _Input(labels, LabelRecord)
        self._label_next = label_next

    @property
    def exhausted(self) -> bool:
        """Whether both sources are finite and everything was handed out."""
        return self._records.exhausted and self._labels.exhausted

    def poll(self, max_records: int, timeout: float) -> list[Record]:
        """Hand out the next records and labels, those of one poll of each source at most: of one partition, therefore.

        Parameters
        ----------
        max_records
            The most to hand out.
        timeout
            Seconds to wait for the first, where some may still arrive.

        Raises
        ------
        SourceError
            When a source cannot be read on. What was polled of the other one is handed out after a restart.

        """
        taken = self._take(max_records)
        if not taken and not self.exhausted:
            for one in self._in_turn():
                one.fill(timeout / 2)
                if one.buffer:
                    break
            taken = self._take(max_records)
        return taken

    def _take(self, limit: int) -> list[Record]:
        first, second = self._in_turn()
        first.fill()
        second.fill()
        if first.buffer and second.buffer and limit > 1:
            pairs = min(len(first.buffer), len(second.buffer), limit // 2)
            return list(chain.from_iterable(zip(first.cut(pairs), second.cut(pairs), strict=True)))
        one, most = (first, 1 if second.buffer else limit) if first.buffer else (second, limit)
        if one.buffer:
            self._label_next = one is self._records
        return one.cut(most)

    def _in_turn(self) -> tuple[_Input, _Input]:
        return (self._labels, self._records) if self._label_next else (self._records, self._labels)


class _Input:
    """One of the sources, and what was polled of it."""

    def __init__(self, source: Source, kind: type[Record]) -> None:
        self._source = source
        self._kind = kind
        self._has_more = False
        self.buffer: list[Record] = []

    @property
    def exhausted(self) -> bool:
        return not self.buffer and self._source.exhausted

    def fill(self, timeout: float = 0.0) -> None:
        """Poll, where nothing is left."""
        if self.buffer or self._source.exhausted:
            return
        polled = self._source.poll(_LOOKAHEAD, max(timeout, _PATIENCE if self._has_more else 0.0))
        self._has_more = len(polled) == _LOOKAHEAD
        self.buffer = list(polled) if self._kind is Record else list(map(self._kind._make, polled))

    def cut(self, most: int) -> list[Record]:
        """Take what is left, but no more than so much."""
        taken, self.buffer = self.buffer[:most], self.buffer[most:]
        return taken
