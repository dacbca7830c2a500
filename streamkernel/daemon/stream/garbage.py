"""Rarer collections of cyclic garbage while records stream through."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rare_collections"]

# Python's 700 is less than the objects of one chunk of records, all of which are freed without a collection. Each
# chunk would be searched, and the whole process, compiler and libraries, every ten thousand records or so.
_NEW_OBJECTS = 50_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Search for cyclic garbage only when tens of thousands of new objects are alive, as long as this lasts.

    A process in which somebody turned the search off, or made it rarer still, is left as it is.

    Examples
    --------
    >>> before = gc.get_threshold()
    >>> with rare_collections():
    ...     gc.get_threshold()[0]
    50000
    >>> gc.get_threshold() == before
    True

    """
    before = gc.get_threshold()
    if 0 < before[0] < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
