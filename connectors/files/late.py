"""Files of a watched directory that are older than those remembered by name: those that came late among them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from streamkernel.connectors.files.places import FinishedFile

__all__ = ["MOST_OLD", "OldFiles"]

_log = logging.getLogger(__name__)

MOST_OLD = 100_000
"""The most old files that are remembered; with more, listing the directory takes too long anyhow."""


class OldFiles:
    """A set of the old files that are no news: they were read, or were there when the run was started.

    Only hashes are kept, and only of `MOST_OLD` files: beyond that, late files are not reported.

    Parameters
    ----------
    place
        The directory, for the log.

    Examples
    --------
    >>> old = OldFiles("in")
    >>> old.add([FinishedFile(1, "in/a.csv", 10)])
    >>> old.late([FinishedFile(1, "in/a.csv", 10), FinishedFile(1, "in/b.csv", 10)])
    [FinishedFile(modified=1, path='in/b.csv', size=10)]
    >>> old.late([FinishedFile(1, "in/a.csv", 10), FinishedFile(1, "in/b.csv", 10)])
    []

    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._known: set[int] = set()
        # Whether there were too many at the last look: what there was then is not known.
        self._too_many = False

    def add(self, files: Iterable[FinishedFile]) -> None:
        """Add files that are no news."""
        self._known.update(map(hash, files))

    def late(self, there: Iterable[FinishedFile]) -> list[FinishedFile]:
        """Return those of all old files now there that are news, and add them."""
        now = {hash(one): one for one in there}
        late = [one for key, one in now.items() if key not in self._known]
        self._known.update(now)
        if len(self._known) > MOST_OLD:  # not sooner: a listing may miss a file once
            self._known.intersection_update(now)
        before, self._too_many = self._too_many, len(now) > MOST_OLD
        if self._too_many:
            self._known.clear()
        if self._too_many and not before:
            _log.warning(
                "%s: more than %s files are older than the remembered names: late files among them are no longer "
                "reported. Move finished files away, which also makes listing faster",
                *(self._place, f"{MOST_OLD:,}"),
            )
        return [] if before or self._too_many else late
