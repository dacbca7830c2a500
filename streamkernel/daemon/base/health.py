"""The health of a daemon: what its liveness and readiness probes answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Health"]


@dataclass
class Health:
    """The state behind the probes, written by the loop and read by the server's threads.

    Attributes
    ----------
    ready
        Whether the daemon takes records.
    obstacle
        Asked for a sentence on why no records come though it would take them; None: they may come.
    trouble
        Asked for a sentence on what is wrong; None: the daemon is well.
    summary
        Asked for a phrase on how far the daemon is, for the service manager's status line.
    page
        Asked for the status page, as HTML.

    """

    ready: bool = False
    obstacle: Callable[[], str | None] = lambda: None
    trouble: Callable[[], str | None] = lambda: None
    summary: Callable[[], str] = lambda: ""
    page: Callable[[], str] = lambda: ""
