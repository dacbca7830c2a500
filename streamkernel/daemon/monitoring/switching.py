"""Shorter turns of Python's threads while the daemon is watched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["short_turns"]

# Python's 5 ms is what the thread that learns keeps the interpreter for, once another asks. An answer takes several
# turns, as each look at a socket is the end of one. Nothing is spent where no other thread waits.
_SECONDS = 0.001


@contextmanager
def short_turns() -> Iterator[None]:
    """Let a thread that waits for the interpreter have it after a millisecond, as long as this lasts.

    Where somebody made turns shorter still they are left as they are.

    Examples
    --------
    >>> before = sys.getswitchinterval()
    >>> with short_turns():
    ...     sys.getswitchinterval()
    0.001
    >>> sys.getswitchinterval() == before
    True

    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
