"""Looks whether the records of a source bring the label that its section names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from streamkernel.connectors.decode import listed
from streamkernel.connectors.names import nearest
from streamkernel.connectors.ports import ColumnUse, Record
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.stream.loop import Feed

__all__ = ["TOLD_AFTER", "LabelWatch", "no_label"]

_log = logging.getLogger(__name__)

TOLD_AFTER = 1000
"""After this number of records without a label the daemon says that none has one."""


class LabelWatch(Feed):
    """A feed that looks for the first label, and says where there is none.

    Parameters
    ----------
    feed
        The feed.
    target
        The name of the label; None: nothing is looked for.
    columns
        Returns the columns of a record.
    section
        The section of the source.

    """

    def __init__(
        self, feed: Feed, target: str | None, columns: Callable[[Record], Sequence[ColumnUse]], section: str = "source"
    ) -> None:
        self._feed = feed
        self._target = target
        self._columns = columns
        self._section = section
        self._looks = target is not None
        self._n_records = 0
        self._last: Record | None = None

    @property
    def exhausted(self) -> bool:
        return self._feed.exhausted

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Hand out the next records; warn once where 1,000 of them had no label."""
        records = self._feed.poll(max_records, timeout)
        if self._looks:
            self._look(records)
        return records

    def verify(self, counts: RecordCounts) -> None:
        """Raise where a source ended and none of its records had its label, by the counts since the first start.

        Raises
        ------
        DaemonError
            Naming the columns that there are.

        """
        if self._target is not None and counts.unlabeled and not counts.learned:
            raise DaemonError(f"{self._missing(counts.unlabeled)}: nothing was learned")

    def _look(self, records: Sequence[Record]) -> None:
        usable = [one for one in records if one.fault is None and not one.blank]
        self._n_records += len(usable)
        self._last = usable[-1] if usable else self._last
        if any(one.y is not None for one in usable):
            self._looks = False
        elif self._n_records >= TOLD_AFTER:
            self._looks = False
            _log.warning("%s: nothing is learned", self._missing(self._n_records))

    def _missing(self, n_records: int) -> str:
        names = [] if self._last is None else [use.name for use in self._columns(self._last)]
        others = [name for name in names if name != self._target]
        has = f"; they have {listed(others)}" if others else ""
        return f"{self._section}.target: none of the {n_records:,} records {no_label(str(self._target), others)}{has}"


def no_label(target: str, columns: Iterable[str]) -> str:
    """Return what no record has, with the nearest name of those it has.

    Examples
    --------
    >>> no_label("prise", ["price", "area"]), no_label("y", ["area"])
    ("has the label 'prise' (did you mean 'price'?)", "has the label 'y'")

    """
    near = nearest(target, (name for name in columns if name != target))
    return f"has the label {target!r:.80}" + ("" if near is None else f" (did you mean {near!r}?)")
