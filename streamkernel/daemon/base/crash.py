"""Fault points: places at which a test can make the daemon die by SIGKILL.

"Killed at any moment, no record is lost or learned twice" can only be shown by dying at exactly the dangerous moments:
in the middle of a batch, with half a checkpoint on disk, on either side of its rename. Sleeping in a test and hoping
to hit them would prove nothing, so the daemon passes named points, and the environment variable
`STREAMKERNEL_CRASH=name:count` kills the process at the count-th pass of that point. Unset, a point does nothing.
"""

import os
import signal
from collections.abc import Callable


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


_name, _left, _die = "", 0, _kill


def arm(where: str, die: Callable[[], None] = _kill) -> None:
    """Die from now on at the place that `where` names.

    Parameters
    ----------
    where
        A name and how often it is passed until then, as ``name:count``. An empty text disarms all points.
    die
        Called there; by default it kills this process.

    Examples
    --------
    >>> from streamkernel.daemon.base import crash
    >>> crash.arm("mid-batch:3", die=lambda: print("dead"))
    >>> crash.point("mid-batch")
    >>> crash.point("mid-batch", passes=2)
    dead
    >>> crash.arm("")

    """
    global _name, _left, _die
    _name, _, count = where.partition(":")
    _left = int(count) if _name else 0
    _die = die


def point(name: str, passes: int = 1) -> None:
    """Die here, if the environment or a test asks for it.

    Parameters
    ----------
    name
        The name of the place.
    passes
        How often the place has been passed since the last call, 1 by default: a loop that works in chunks reports a
        whole chunk at once.

    Examples
    --------
    >>> from streamkernel.daemon.base import crash
    >>> crash.point("mid-batch")

    """
    global _left
    if name == _name:
        _left -= passes
        if _left <= 0:
            _die()


arm(os.environ.get("STREAMKERNEL_CRASH", ""))
