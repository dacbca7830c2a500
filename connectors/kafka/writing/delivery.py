"""Delivers lines to a topic: sends them, again by the next session where one breaks, until they are committed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from streamkernel.connectors.kafka.base.outage import Outage
from streamkernel.connectors.kafka.writing.backlog import Backlog
from streamkernel.connectors.kafka.writing.existing_lines import ExistingLines
from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.kafka.writing.refusals import Refusals
from streamkernel.connectors.kafka.writing.session import Broken, ConnectSession, Line, ProducerSession, Refused
from streamkernel.connectors.kafka.writing.session_connector import SessionConnector
from streamkernel.connectors.kafka.writing.transaction import Transaction
from streamkernel.connectors.ports import ConnectorError, Mark, OutageError, SinkError

__all__ = ["Delivery"]

_log = logging.getLogger(__name__)

SILENT_SECONDS = 5.0
# A cluster whose brokers all moved is found again by its first addresses, not by those the client knows.
_ANEW_SECONDS = 60.0
NAP_SECONDS = 0.1
# Breaks one after the other without a line between: then it is no accident.
_MOST_BREAKS = 5
# The lines of a transaction stay in memory until it ends: a larger one is committed early.
_MOST_OPEN_BYTES = 2**25
# By then the broker has ended a transaction whose time is up, and reported it.
_MARGIN_SECONDS = 60.0


class Delivery:
    """The lines of a sink on their way, from its opening or the mark of a checkpoint on.

    Parameters
    ----------
    place, name
        What a sentence about it begins with, and what its threads are called.
    transactional_id
        What the broker knows the writer by; None: no transactions.

    Attributes
    ----------
    backlog
        The lines that are not acknowledged.
    failed
        Whether it has failed for good, and raised why.

    """

    def __init__(
        self,
        place: str,
        name: str,
        connect: ConnectSession,
        transactional_id: str | None,
        existing: ExistingLines,
        refusals: Refusals,
        clock: Callable[[], float],
        mark: Mark | None,
    ) -> None:
        self.backlog = Backlog()
        self.failed = False
        self._place = place
        self._transactional_id = transactional_id
        self._existing = existing
        self._refusals = refusals
        self._clock = clock
        self._mark = mark
        self._connector = SessionConnector(connect, name, clock, self._reached)
        down = "nothing is acknowledged (%s): lines wait in memory"
        self._outage = Outage(_log, place, down, "lines are acknowledged again after %.0f s", clock)
        self._answered_since: float | None = None
        self._transaction: Transaction | None = None
        self._doubtful: Transaction | None = None
        self._ending = False
        self._breaks = 0
        self._moved = clock()
        self._hurried = False

    def reach(self, seconds: float) -> None:
        """Connect, for some seconds; where no broker answers, that goes on later."""
        self._connector.begin(self._mark)
        deadline = self._clock() + seconds
        while self._connector.session is None and self._clock() < deadline:
            self._nap()
            self.pump()
        if self._connector.session is None:
            self._outage.begin(self._connector.failure(), self._moved)

    def put(self, lines: Sequence[Line]) -> None:
        """Take lines, and send what can be sent."""
        if lines and self.idle:
            self._moved = self._clock()
        self.backlog.put(lines)
        self.pump()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._connector.session is not None and not self._connector.busy and not self.backlog

    @property
    def largest(self) -> int | None:
        """The longest batch the topic takes, in bytes; None where that is not known, or not yet."""
        session = self._connector.session
        return None if session is None else session.largest

    @property
    def unfinished(self) -> bool:
        """Whether lines wait that may still count."""
        return not self.failed and self.unpublished > 0

    def complete(self, patience: float) -> None:
        """Wait until every line is acknowledged and committed.

        Raises `OutageError` where nothing moved for so many seconds, `SinkError` where lines are refused.
        """
        self._hurried = True
        try:
            self.settle(patience)
        finally:
            self._hurried = False
        while self._transaction is not None:
            session = self._connector.session
            assert session is not None
            self._commit(session)
            self.settle(patience)

    def publish(self) -> None:
        """Begin to commit the open transaction, without waiting: lines taken from now on are for the next one."""
        self._ending = self._transaction is not None
        self.pump()

    @property
    def unpublished(self) -> int:
        """How many lines do not count for consumers that read what is committed."""
        transaction = self._transaction or self._doubtful
        return len(self.backlog) + (0 if transaction is None else len(transaction.lines))

    def settle(self, patience: float) -> None:
        """Wait until every line is acknowledged; see `complete`."""
        while True:
            self.pump()
            if self.idle:
                return
            if self._clock() - self._moved > patience:
                raise self._outage_error()
            self._nap()

    def _outage_error(self) -> OutageError:
        if self.backlog:
            what = f"{len(self.backlog):,} lines wait"
        else:
            what = "it was not reached yet" if self._connector.session is None else "the end of a transaction waits"
        return OutageError(f"{self._place}: nothing is acknowledged ({self._connector.failure()}), {what}")

    def mark(self, ends: Mapping[int, int] | None = None) -> dict[str, Any]:
        """Return a mark: of lines that all count, or, given where it ended, of a topic where some may not."""
        session = self._connector.session
        assert session is not None
        assert session.producer is not None
        return OutputMark(
            session.stream,
            session.writer,
            dict(session.ends if ends is None else ends),
            session.producer,
            self._transactional_id,
            session.written.runs(),
            session.sequences if ends is None else {},
            session.written.passed,
            session.existing,
        ).to_json()

    def close(self) -> None:
        """End the connections."""
        self._connector.close()

    def pump(self) -> None:
        """Do what can be done without waiting; raises `SinkError` where that is not possible, and never will be."""
        try:
            try:
                self._move()
            except Broken as error:
                self._break(error)
        except ConnectorError as error:
            self.failed = True
            raise SinkError(f"{self._place}: {error}") from None

    def _move(self) -> None:
        connector = self._connector
        self._reap()
        connector.look()
        if connector.due:
            connector.begin(self._mark)
        session = connector.session
        if not connector.busy and session is not None and session.verify():
            if not self._ending:
                self._send(session)
            elif not self.backlog.sent:
                self._commit(session)
        self._look()

    def _commit(self, session: ProducerSession) -> None:
        self._connector.start(session.commit, self._committed)
        self._moved = self._clock()

    def _nap(self) -> None:
        connector = self._connector
        if connector.busy:
            connector.wait(NAP_SECONDS)
        elif connector.session is not None and self.backlog.sent:
            connector.session.wait(NAP_SECONDS)
        else:
            time.sleep(NAP_SECONDS / 10)

    def _reached(self, session: ProducerSession) -> None:
        self._existing.found(session.existing)
        # What became of the transaction that the session before was in?
        doubtful, self._doubtful = self._doubtful, None
        if doubtful is not None:
            self.backlog.put_first(doubtful.missing(session.written))
        self._moved = self._clock()

    def _committed(self, future: Future[Any]) -> None:
        future.result()
        self._transaction = None
        self._ending = False
        self._moved = self._clock()
        self._breaks = 0

    def _send(self, session: ProducerSession) -> None:
        backlog, queue = self.backlog, self.backlog.queue
        written, unverified, partitions = session.written, session.unverified, session.partitions
        while queue and not backlog.full:
            line = queue[0]
            if written and written.take(line.position):
                backlog.drop()
                continue
            if session.existing and not self._existing.admits(backlog, self._hurried):
                self._moved = self._clock()
                return
            if line.taken is not None:
                line = queue[0] = self._refusals.fitted(line, session.largest)
            if unverified and line.position.partition % partitions in unverified:
                if not backlog.sent:
                    self._connector.start(partial(session.send_verified, line), self._verified)
                return
            if session.transactional and self._transaction is None:
                session.begin()
                self._transaction = Transaction(session.ends)
            backlog.given(session.send(line))

    def _verified(self, future: Future[Any]) -> None:
        session = self._connector.session
        assert session is not None
        offset = future.result()
        line = self.backlog.drop()
        session.ends[line.position.partition % session.partitions] = offset + 1
        self._moved = self._clock()
        self._breaks = 0

    def _reap(self) -> None:
        """Take note of what is acknowledged."""
        session, sent = self._connector.session, self.backlog.sent
        if session is None or not sent or not sent[0][1].is_done:
            return
        while sent and (receipt := sent[0][1]).is_done:
            if receipt.exception is not None:
                raise self._cause(session)
            line = self.backlog.acknowledge()
            offset = receipt.value.offset
            if offset >= 0:
                session.ends[line.position.partition % session.partitions] = offset + 1
            if self._transaction is not None:
                self._transaction.add(line)
        self._moved = self._clock()
        if self._transaction is None:
            self._breaks = 0
        elif self._transaction.bytes > _MOST_OPEN_BYTES:
            self._ending = True

    def _cause(self, session: ProducerSession) -> Exception:
        """Return what is wrong with the line that made the others fail."""
        sent = self.backlog.sent
        failed = [(line, receipt.exception) for line, receipt in sent if receipt.exception is not None]
        line, error = next(((line, error) for line, error in failed if not session.follows(error)), failed[0])
        return session.explain(error, line)

    def _break(self, error: Broken) -> None:
        """Leave a session that broke, and connect another one."""
        self._breaks = 0 if isinstance(error, Refused) else self._breaks + 1  # less is left to refuse
        session = self._connector.session
        assert session is not None
        if isinstance(error, Refused):
            self._refusals.meet(error, self.backlog, session.explain)
        if self._breaks > _MOST_BREAKS:
            raise SinkError(f"the broker refuses the lines again and again ({error})")
        level = logging.WARNING if session.transactional else logging.DEBUG
        _log.log(level, "%s: connecting again: %s", self._place, error)
        self._connector.reason = str(error)
        self._moved = self._clock()  # a broker answered: the next session has its time, too
        self._leave()

    def _leave(self) -> None:
        session = self._connector.session
        assert session is not None
        # What was not acknowledged may stand there all the same: the next session finds it. It is also to find what was
        # acknowledged in a transaction, which is no proof that it counts.
        self._doubtful, self._transaction = self._transaction, None
        self._ending = False
        self._mark = self.mark(session.ends if self._doubtful is None else self._doubtful.ends)
        self.backlog.take_back()
        self._connector.begin(self._mark, self._connector.leave())

    def _look(self) -> None:
        """Log when nothing is acknowledged, and end what never will be."""
        silent = self._clock() - self._moved
        if self.idle or silent < SILENT_SECONDS:
            self._answered_since = None
            self._outage.end()
            return
        self._outage.begin(self._connector.failure(), self._moved)
        session = self._connector.session
        if session is None:
            return
        if session.transactional:
            self._check_transaction(session)
        elif silent > _ANEW_SECONDS:
            self._moved = self._clock() - SILENT_SECONDS
            self._leave()

    def _check_transaction(self, session: ProducerSession) -> None:
        """Raise `SinkError` where brokers answer for longer than a transaction may take: they do not know of it."""
        now = self._clock()
        if not session.answered():
            self._answered_since = None
        elif self._answered_since is None:
            self._answered_since = now
        elif now - self._answered_since > session.transaction_seconds + _MARGIN_SECONDS:
            raise SinkError(
                f"nothing was acknowledged for {now - self._answered_since:.0f} s, though the broker answers: the "
                "transaction has timed out. Start again, nothing is lost"
            )
