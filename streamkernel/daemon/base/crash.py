"""Fault points: places at which a test can make the daemon die by SIGKILL.

"Killed at any moment, no record is lost or learnt twice" can only be shown by dying at exactly the dangerous moments:
in the middle of a batch, with half a checkpoint on disk, on either side of its rename. Sleeping in a test and hoping
to hit them would prove nothing, so the daemon passes named points, and the environment variable
`STREAMKERNEL_CRASH=name:count` kills the process at the count-th pass of that point. Unset, a point does nothing.
"""

import os
import signal

_name, _, _count = os.environ.get("STREAMKERNEL_CRASH", "").partition(":")
_left = int(_count) if _name else 0


def point(name: str, passes: int = 1) -> None:
    """Die here, by SIGKILL, if the environment asks for it.

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
            os.kill(os.getpid(), signal.SIGKILL)
