"""Threads for what an answer takes long to make, none of which the end of the daemon waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["Threads"]

T = TypeVar("T")


class Threads:
    """Runs functions in daemon threads, some at once; the others wait.

    The threads of anyio and of `concurrent.futures` are joined when the process ends: one scrape that does not come
    back would hold up the end for as long as it takes.
    """

    def __init__(self, most: int) -> None:
        self._places = asyncio.Semaphore(most)

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function; when this is cancelled, its thread goes on and nobody hears of its result."""
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()  # so that nobody cancels it, but only the wait for it

        def work() -> None:
            try:
                answer.set_result(function())
            except Exception as error:
                answer.set_exception(error)

        async with self._places:
            threading.Thread(target=work, name="answer", daemon=True).start()
            return await asyncio.wrap_future(answer)
