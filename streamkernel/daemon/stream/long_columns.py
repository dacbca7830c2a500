"""Lines that are too long for a topic because of a column that passes through."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from streamkernel.connectors.encode import to_json

__all__ = ["LongColumns"]

_log = logging.getLogger(__name__)


class LongColumns:
    """Shortens lines: of the columns that pass through, the longest become null until the line fits.

    A record that is as long as it may be must not stop the daemon by what passes of it.

    Parameters
    ----------
    names
        Those columns.

    Examples
    --------
    >>> shorten = LongColumns(["id", "text"])
    >>> shorten({"prediction": 1, "id": 7, "text": 900 * "x"}, 100)
    {'prediction': 1, 'id': 7, 'text': None}

    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._told = False

    def __call__(self, line: Mapping[str, Any], most: int) -> Mapping[str, Any]:
        """Return a line that takes at most `most` bytes as JSON, where that can be reached."""
        fitting = dict(line)
        for name in sorted(self._names, key=lambda name: -len(to_json(line.get(name)))):
            if len(to_json(fitting)) <= most:
                break
            fitting[name] = None
            if not self._told:
                self._told = True
                _log.warning("a line is too long for the topic: the column %s is null in such lines", name)
        return fitting
