"""Calls that may wait for ever, on threads that may be left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["watched"]

T = TypeVar("T")


def watched(call: Callable[[], T], name: str) -> Future[T]:
    """Start a call on a thread of its own, which ends with the process at the latest.

    The threads of `concurrent.futures` are joined at the end of the process, which a broker that never answers would
    put off for ever.

    Parameters
    ----------
    call
        What to do.
    name
        The name of the thread.

    Examples
    --------
    >>> watched(lambda: 6 * 7, "counting").result(timeout=1)
    42

    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
