"""SIGTERM and SIGINT as a wish to stop, granted between two records."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["StopSignals", "Stopped"]


class Stopped(Exception):
    """It was told to stop before it had begun; the message is a sentence for the log."""


class StopSignals:
    """While entered, SIGTERM and SIGINT are noted instead of ending the process.

    A second signal ends it at once: whoever presses Ctrl-C again means it, and a kill is safe at any moment.

    Attributes
    ----------
    name
        The signal that came, None before.

    """

    def __init__(self) -> None:
        self.name: str | None = None
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        """Say whether to stop."""
        return self.name is not None

    def check(self) -> None:
        """Go no further where it is to stop, while nothing is begun.

        Raises
        ------
        Stopped
            When a signal came.

        """
        if self():
            raise Stopped(f"{self.name} came before anything was begun")

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python hands signals to no other
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore(self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.name = signal.Signals(number).name
        self._restore(dict.fromkeys(self._before, signal.SIG_DFL))

    def _restore(self, handlers: dict[int, Any]) -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)
