"""A graceful stop on SIGTERM and its like: between two records, or after some seconds in the middle of one."""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from streamkernel.daemon.base.early_signals import STOPPING, end_at_once, is_program

__all__ = ["GRACE_SECONDS", "StopSignals", "Stopped"]


_log = logging.getLogger(__name__)

# A parent has them ignored where the process shall outlive a terminal, as nohup does.
_MAY_BE_IGNORED = (signal.SIGHUP, signal.SIGQUIT)
# A supervisor kills after ten seconds, as often as not; a record that takes longer is not worth waiting for.
GRACE_SECONDS = 8.0


class Stopped(Exception):
    """A stop was asked for before anything was begun; the message is a sentence for the log."""


class StopSignals:
    """Handlers of SIGTERM, SIGINT, SIGHUP and SIGQUIT: while entered, these are noted instead of ending the process.

    A second signal ends it at once: a second Ctrl-C is meant, and a kill is safe at any moment. SIGHUP and
    SIGQUIT stay ignored where they were.

    Attributes
    ----------
    name
        The signal that came, None before.

    """

    def __init__(self) -> None:
        self.name: str | None = None
        self._before: dict[int, Any] = {}
        self._at_work = False
        self._left = threading.Event()

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.name is not None

    def at_work(self, at_work: bool) -> None:
        """Note that the model is given records, or that it is done with them.

        One that is not done some seconds after the signal is not waited for: the process ends as if it were killed.
        That is safe, a restart continues from the last checkpoint.
        """
        self._at_work = at_work

    def check(self) -> None:
        """Raise if a stop was asked for, as long as nothing is begun.

        Raises
        ------
        Stopped
            When a signal came.

        """
        if self():
            raise Stopped(f"{self.name} came before the run started")

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python hands signals to no other
            for number in STOPPING:
                if number not in _MAY_BE_IGNORED or signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        over = is_program() and kind is None  # what is left is to print its results: a signal changes nothing any more
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if over else handler)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.name = signal.Signals(number).name
        end_at_once(self._before)
        threading.Thread(target=self._end_the_record, name="stop", daemon=True).start()

    def _end_the_record(self) -> None:
        pause = GRACE_SECONDS
        while not self._left.wait(pause):
            if self._at_work:
                _log.error(
                    "%s came %.0f s ago, and the model has not finished the current record. The process ends "
                    "without it; a restart continues from the last checkpoint",
                    *(self.name, GRACE_SECONDS),
                )
                os._exit(1)
            pause = 0.1
