"""What signals do before a command handles them: while Python imports it, and in commands that handle none."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["STOPPING", "end_at_once", "handle_early_signals", "is_program", "quiet_interrupts"]

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that end a process."""

_program = False


def is_program() -> bool:
    """Return whether this process is a command of ours: it ends with its run."""
    return _program


def handle_early_signals() -> None:
    """Let SIGUSR1 and SIGUSR2 do nothing, and those of `STOPPING` end process 1 as they end every other process."""
    global _program
    _program = True
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    if os.getpid() == 1:
        end_at_once(STOPPING)


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Let Ctrl-C end the process, where Python would print where it was."""
    python_s = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if python_s:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    if python_s:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_at_once(numbers: Iterable[int]) -> None:
    """Let each of these signals end this process at once."""
    # The kernel drops a signal to process 1, as in a container, unless that has a handler of its own.
    handler = _end if os.getpid() == 1 else signal.SIG_DFL
    for number in numbers:
        signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(128 + number)
