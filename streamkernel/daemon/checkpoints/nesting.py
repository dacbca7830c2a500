"""A bound on the depth of containers that a payload makes.

Python frees lists, tuples, dictionaries and instances level by level, however deep they are. Some containers descend
into what they hold instead, as the hash of a tuple does, and end the process where its stack ends.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

import numpy as np

from streamkernel.daemon.base.errors import CheckpointError

__all__ = ["DEEPEST", "Nesting"]

#: More than a pickle can be written with, for its writer descends, too; far fewer than take a stack.
DEEPEST = 1000

_DESCENDING = (np.ndarray, collections.deque, collections.defaultdict)


class Nesting:
    """The depth to which arrays of objects, deques and default dictionaries hold others directly."""

    def __init__(self) -> None:
        # With the object, so that its id stays its own.
        self._depths: dict[int, tuple[int, Any]] = {}
        self._held: set[int] = set()

    def put(self, outer: Any, inner: Iterable[Any]) -> None:
        """Note what is put into a container.

        Raises
        ------
        CheckpointError
            Where it is nested too deeply, or put into what was put into another one before: a writer fills the inner
            one first.

        """
        found = [one for one in inner if isinstance(one, _DESCENDING)]
        if not found:
            return
        depth = max(self._depths.get(id(outer), (0,))[0], *(1 + self._depths.get(id(one), (0,))[0] for one in found))
        if depth > DEEPEST or id(outer) in self._held:
            raise CheckpointError("the payload is nested too deeply, which no checkpoint may be")
        self._depths[id(outer)] = depth, outer
        for one in found:
            self._depths.setdefault(id(one), (0, one))
            self._held.add(id(one))
