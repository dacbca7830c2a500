"""What is said while nothing is acknowledged, and when a transaction is given up."""

from __future__ import annotations

import logging
from collections.abc import Callable

from connectors.kafka.writing.session import Session
from connectors.ports import OutageError, SinkError

__all__ = ["Silence"]

_log = logging.getLogger(__name__)

# By then the broker has ended the transaction, and said so.
_MARGIN_SECONDS = 60.0


class Silence:
    """An outage of an output, told once when it begins and once when it ends.

    Parameters
    ----------
    place
        What a line about it begins with.
    clock
        Gives seconds, and never goes back.

    """

    def __init__(self, place: str, clock: Callable[[], float]) -> None:
        self._place = place
        self._clock = clock
        self._since: float | None = None
        self._answered_since: float | None = None

    def begins(self, since: float, reason: Callable[[], str]) -> None:
        """Say that nothing is acknowledged, unless that was said."""
        if self._since is None:
            self._since = since
            _log.warning("%s: nothing is acknowledged (%s): lines wait in memory until it is", self._place, reason())

    def ends(self) -> None:
        """Say that lines are acknowledged again, where that was not so."""
        self._answered_since = None
        if self._since is not None:
            _log.info("%s: lines are acknowledged again after %.0f s", self._place, self._clock() - self._since)
            self._since = None

    def outage(self, lines: int, reached: bool, reason: str) -> OutageError:
        """Make the error of somebody whose patience has ended."""
        what = f"{lines:,} lines wait" if lines else "the end of a transaction waits"
        what = what if reached or lines else "it was not reached yet"
        return OutageError(f"{self._place}: nothing is acknowledged ({reason}), {what}")

    def check_transaction(self, session: Session) -> None:
        """End what never ends: where brokers answer for longer than a transaction may take, it is none of theirs.

        Raises
        ------
        SinkError
            Then.

        """
        now = self._clock()
        if not session.answered():
            self._answered_since = None
        elif self._answered_since is None:
            self._answered_since = now
        elif now - self._answered_since > session.transaction_seconds + _MARGIN_SECONDS:
            raise SinkError(
                f"nothing was acknowledged for {now - self._answered_since:.0f} s, though the broker answers: the "
                "transaction is over by now; start again, nothing is lost"
            )
