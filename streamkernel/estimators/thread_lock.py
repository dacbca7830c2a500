"""The lock of an estimator for several threads: created at its first use, and not part of copies and pickles."""

import os
import threading
from typing import Any
from weakref import WeakSet

__all__ = ["ThreadLock"]

_made: WeakSet[Any] = WeakSet()
_guard = threading.Lock()  # of `_made`
_held: list[Any] = []


class ThreadLock:
    """The attribute `_lock` of an estimator, a reentrant lock: of two threads, the second one waits.

    A loss or a kernel of the user may ask the estimator that calls it, so the lock is reentrant. What takes one record
    acquires and releases it by hand, which is quicker than ``with``. A fork waits for all of them: the new process
    has no thread that would release one, and would continue with half a record.
    """

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self
        lock = threading.RLock()
        with _guard:
            _made.add(lock)
        # In one step, so that two threads get the same one. From now on the instance has it, without this call.
        return estimator.__dict__.setdefault("_lock", lock)


def _acquire() -> None:
    with _guard:
        _held[:] = list(_made)
    for lock in _held:
        lock.acquire()
    _guard.acquire()  # the last one: a thread that makes a lock may hold others


def _release() -> None:
    _guard.release()
    while _held:
        _held.pop().release()


os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)
