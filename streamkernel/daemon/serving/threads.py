"""Threads for what an answer takes long to make, none of which the end of the daemon waits for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
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
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            if outcome.cancelled():
                return
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            result, error = None, None
            try:
                result = function()
            except Exception as raised:
                error = raised
            with contextlib.suppress(RuntimeError):  # the server has ended in between
                loop.call_soon_threadsafe(settle, result, error)

        async with self._places:
            threading.Thread(target=work, name="answer", daemon=True).start()
            return await outcome
