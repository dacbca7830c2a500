"""Queues with keys, and a log by which their changes can be taken back.

Records are decided on by the chunk, before the model has seen them. What it then refuses, or does not reach, must be
as if it had never been decided: an undo log notes how each change is undone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

__all__ = ["FEW", "KeyedQueue", "UndoLog"]

Value = TypeVar("Value")

# Places of values that were taken out of the middle are dropped when they outnumber the others, and these.
FEW = 1024


class UndoLog:
    """Changes that can be taken back, the last one first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def note(self, undo: Callable[[], Any]) -> None:
        """Note how to undo a change that was made."""
        self._undo.append(undo)

    @property
    def mark(self) -> int:
        """How many changes were noted by now."""
        return len(self._undo)

    def take_back(self, mark: int) -> None:
        """Undo all changes after a mark, the last one first."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def forget(self) -> None:
        """Empty the log: the changes can no longer be taken back."""
        self._undo.clear()


class KeyedQueue(Generic[Value]):
    """A queue of values with keys: the oldest comes first, and any can be taken out by its key.

    A value that is taken out of the middle must be an object of its own: its place is known by it.

    Parameters
    ----------
    undo
        Where changes are noted.
    size
        Gives the size of a value under its key, in bytes, which never changes.

    Attributes
    ----------
    n_bytes
        The size of all that is held.

    Examples
    --------
    >>> undo = UndoLog()
    >>> queue = KeyedQueue(undo)
    >>> queue.put("a", 1.5)
    >>> queue.put("b", 2.5)
    >>> mark = undo.mark
    >>> queue.pop("a"), queue.oldest()
    (1.5, ('b', 2.5))
    >>> undo.take_back(mark)
    >>> list(queue)
    [('a', 1.5), ('b', 2.5)]

    """

    def __init__(self, undo: UndoLog, size: Callable[[str, Value], int] = lambda _key, _value: 0) -> None:
        self._undo = undo
        self._size = size
        self.n_bytes = 0
        self._values: dict[str, Value] = {}
        # A place stays where its value was taken out, until it is the oldest or there are too many of them.
        self._places: deque[tuple[str, Value]] = deque()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[tuple[str, Value]]:
        """Return all keys and values, the oldest first."""
        values = self._values
        return iter([place for place in self._places if values.get(place[0]) is place[1]])

    def get(self, key: str) -> Value | None:
        """Return a value; None where there is none."""
        return self._values.get(key)

    def put(self, key: str, value: Value) -> None:
        """Hold a value, as the newest, under a key that holds none."""
        self._put(key, value)
        self._places.append((key, value))
        self._undo.note(partial(self._remove_newest, key))

    def pop(self, key: str) -> Value | None:
        """Take a value out; None where there is none."""
        value = self._values.pop(key, None)
        if value is not None:
            self.n_bytes -= self._size(key, value)
            self._undo.note(partial(self._put, key, value))
        return value

    def oldest(self) -> tuple[str, Value] | None:
        """Return the oldest key and value; None where there are none."""
        while self._places:
            place = self._places[0]
            if self._values.get(place[0]) is place[1]:
                return place
            self._places.popleft()
            self._undo.note(partial(self._places.appendleft, place))
        return None

    def pop_oldest(self) -> tuple[str, Value]:
        """Take out the oldest; there must be one."""
        place = self.oldest()
        assert place is not None
        self.pop(place[0])
        self._places.popleft()
        self._undo.note(partial(self._places.appendleft, place))
        return place

    def tidy(self) -> None:
        """Drop the places of what was taken out, where they are many; what was changed before cannot be taken back."""
        if len(self._places) > 2 * len(self._values) + FEW:
            self._places = deque(self)

    def _put(self, key: str, value: Value) -> None:
        self._values[key] = value
        self.n_bytes += self._size(key, value)

    def _remove_newest(self, key: str) -> None:
        self.n_bytes -= self._size(key, self._values.pop(key))
        self._places.pop()
