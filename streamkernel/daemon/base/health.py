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
    page
        Asked for the status page, as HTML.

    """

    ready: bool = False
    obstacle: Callable[[], str | None] = lambda: None
    trouble: Callable[[], str | None] = lambda: None
    page: Callable[[], str] = lambda: ""
