"""The lock of an estimator that several threads use: made at its first use, and no part of copies and pickles."""

import threading
from typing import Any

__all__ = ["ThreadLock"]


class ThreadLock:
    """The attribute `_lock` of an estimator, a reentrant lock: of two threads, the second one waits.

    A loss or a kernel of the user may ask the estimator that calls it, so the lock is reentrant. What takes one record
    acquires and releases it by hand: ``with`` costs three times as much.
    """

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self
        # In one step, so that two threads get the same one. From now on the instance has it, without this call.
        return estimator.__dict__.setdefault("_lock", threading.RLock())
