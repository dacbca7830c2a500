"""The end of a process together with the one that started it, however that one ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["die_with"]

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Let this process not outlive the one that started it, whose number is given.

    Linux kills it, also where it is stopped, with the thread that started it, which is to live as long as the process.
    Elsewhere it has to look round itself.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # gone before it was said
        os._exit(1)
