"""The health of a daemon: what its liveness and readiness probes answer, and its status page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Health", "NoStatusError", "StatusSource"]

StatusSource = Callable[[float, int | None], bytes | None]
"""Gives the status as JSON, with points of the history newer than a time in seconds since 1970, of a partition or,
without one, of all; None where there is no such partition."""


class NoStatusError(Exception):
    """The status cannot be had for now; the message is a sentence."""


@dataclass
class Health:
    """The state that the probes report, written by the loop and read by the server's threads.

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
    policy
        The Content-Security-Policy of that page; empty: it may load nothing, as all other answers.
    status
        Asked for the status as JSON; None: there is none.

    """

    ready: bool = False
    obstacle: Callable[[], str | None] = lambda: None
    trouble: Callable[[], str | None] = lambda: None
    summary: Callable[[], str] = lambda: ""
    page: Callable[[], str] = lambda: ""
    policy: str = ""
    status: StatusSource | None = None

    def state(self) -> tuple[str, str | None]:
        """Return the state in one word, ``ready``, ``not ready``, ``obstacle`` or ``trouble``, with the sentence on it.

        Examples
        --------
        >>> Health().state(), Health(ready=True, obstacle=lambda: "no broker answers").state()
        (('not ready', None), ('obstacle', 'no broker answers'))

        """
        if trouble := self.trouble():
            return "trouble", trouble
        obstacle = self.obstacle()
        if not self.ready:
            return "not ready", obstacle
        return ("obstacle", obstacle) if obstacle else ("ready", None)

    def unready(self) -> str | None:
        """Return why the daemon takes no records, as the readiness probe has it; None where it does."""
        return self.obstacle() or (None if self.ready else "not ready")
