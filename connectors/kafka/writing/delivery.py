"""Lines on their way to a topic: sent, acknowledged, sent again by the next session where one breaks, committed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from connectors.kafka.writing.appending import Appending
from connectors.kafka.writing.backlog import Backlog
from connectors.kafka.writing.connecting import Connecting
from connectors.kafka.writing.mark import OutputMark
from connectors.kafka.writing.session import Broken, Connect, Line, Session
from connectors.kafka.writing.silence import Silence
from connectors.kafka.writing.transaction import Transaction
from connectors.ports import ConnectorError, Mark, SinkError

__all__ = ["Delivery"]

_log = logging.getLogger(__name__)

_SILENT_SECONDS = 5.0
# A cluster whose brokers all moved is found again by its first addresses, not by those the client knows.
_ANEW_SECONDS = 60.0
_NAP_SECONDS = 0.1
# Breaks one after the other without a line between: then it is no accident.
_MOST_BREAKS = 5


class Delivery:
    """The way of the lines of a sink from its opening on.

    Parameters
    ----------
    place
        What a sentence about it begins with.
    name
        What its threads are called.
    connect
        Makes a session.
    transactional_id
        What the broker knows the writer by; None: no transactions.
    appending
        What is decided about a topic that holds lines already.
    clock
        Gives seconds, and never goes back.
    mark
        Where it goes on.

    Attributes
    ----------
    backlog
        The lines that are not acknowledged.
    failed
        Whether it has failed for good, and said so.

    """

    def __init__(
        self,
        place: str,
        name: str,
        connect: Connect,
        transactional_id: str | None,
        appending: Appending,
        clock: Callable[[], float],
        mark: Mark | None,
    ) -> None:
        self.backlog = Backlog()
        self.failed = False
        self._place = place
        self._transactional_id = transactional_id
        self._appending = appending
        self._clock = clock
        self._mark = mark
        self._connecting = Connecting(connect, name, clock, self._reached)
        self._silence = Silence(place, clock)
        self._transaction: Transaction | None = None
        self._doubtful: Transaction | None = None
        self._breaks = 0
        self._moved = clock()
        self._hurried = False

    def reach(self, seconds: float) -> None:
        """Connect, for some seconds; where no broker answers, that goes on later."""
        self._connecting.begin(self._mark)
        deadline = self._clock() + seconds
        while self._connecting.session is None and self._clock() < deadline:
            self._nap()
            self.pump()
        if self._connecting.session is None:
            self._silence.begins(self._moved, self._connecting.failure)

    def put(self, lines: Sequence[Line]) -> None:
        """Take lines, and send what can be sent."""
        if lines and self.idle:
            self._moved = self._clock()
        self.backlog.put(lines)
        self.pump()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._connecting.session is not None and not self._connecting.busy and not self.backlog

    @property
    def largest(self) -> int | None:
        """The longest batch the topic takes, in bytes; None where that is not known, or not yet."""
        session = self._connecting.session
        return None if session is None else session.largest

    @property
    def unfinished(self) -> bool:
        """Whether lines wait that may still count."""
        return not self.failed and (bool(self.backlog) or self._transaction is not None)

    def complete(self, patience: float) -> None:
        """Wait until every line counts.

        Raises
        ------
        OutageError
            When nothing moved for as long as the patience lasts.
        SinkError
            When lines are refused.

        """
        self._hurried = True
        try:
            self.settle(patience)
        finally:
            self._hurried = False
        while self._transaction is not None:
            session = self._connecting.session
            assert session is not None
            self._connecting.start(session.commit, self._committed)
            self._moved = self._clock()
            self.settle(patience)

    def settle(self, patience: float) -> None:
        """Wait until nothing waits any more; see `complete`."""
        while True:
            self.pump()
            if self.idle:
                return
            if self._clock() - self._moved > patience:
                reached = self._connecting.session is not None
                raise self._silence.outage(len(self.backlog), reached, self._connecting.failure())
            self._nap()

    def mark(self, ends: Mapping[int, int] | None = None) -> dict[str, Any]:
        """Make a mark: of lines that all count, or, given where it ended, of a topic where some may not."""
        session = self._connecting.session
        assert session is not None
        return OutputMark(
            session.stream,
            session.writer,
            dict(session.ends if ends is None else ends),
            session.producer,
            self._transactional_id,
            session.emitted.runs(),
            session.sequences if ends is None else {},
            session.emitted.passed,
            session.earlier,
        ).to_json()

    def close(self) -> None:
        """End the connections."""
        self._connecting.close()

    def pump(self) -> None:
        """Move everything on that can be moved.

        Raises
        ------
        SinkError
            When that is not possible, and never will be.

        """
        try:
            try:
                self._move()
            except Broken as error:
                self._break(error)
        except ConnectorError as error:
            self.failed = True
            raise SinkError(f"{self._place}: {error}") from None

    def _move(self) -> None:
        connecting = self._connecting
        self._reap()
        connecting.look()
        if connecting.due:
            connecting.begin(self._mark)
        session = connecting.session
        if not connecting.busy and session is not None and session.verify():
            self._send(session)
        self._look()

    def _nap(self) -> None:
        connecting = self._connecting
        if connecting.busy:
            connecting.wait(_NAP_SECONDS)
        elif connecting.session is not None and self.backlog.sent:
            connecting.session.wait(_NAP_SECONDS)
        else:
            time.sleep(_NAP_SECONDS / 10)

    def _reached(self, session: Session) -> None:
        self._appending.found(session.earlier)
        # What became of the transaction that the session before was in?
        doubtful, self._doubtful = self._doubtful, None
        if doubtful is not None:
            doubtful.check(session.emitted, self._connecting.reason)
        self._moved = self._clock()

    def _committed(self, future: Future[Any]) -> None:
        future.result()
        self._transaction = None
        self._moved = self._clock()

    def _send(self, session: Session) -> None:
        backlog, queue = self.backlog, self.backlog.queue
        emitted, unproven, partitions, earlier = session.emitted, session.unproven, session.partitions, session.earlier
        while queue and not backlog.full:
            line = queue[0]
            if emitted and emitted.take(line.position):
                backlog.drop()
                continue
            if earlier and not self._appending.admits(backlog, self._hurried):
                self._moved = self._clock()
                return
            if unproven and line.position.partition % partitions in unproven:
                if not backlog.sent:
                    self._connecting.start(partial(session.prove, line), self._proven)
                return
            if session.transactional and self._transaction is None:
                session.begin()
                self._transaction = Transaction(session.ends)
            backlog.given(session.send(line))

    def _proven(self, future: Future[Any]) -> None:
        session = self._connecting.session
        assert session is not None
        offset = future.result()
        line = self.backlog.drop()
        session.ends[line.position.partition % session.partitions] = offset + 1
        self._moved = self._clock()
        self._breaks = 0

    def _reap(self) -> None:
        """Note what is acknowledged."""
        session, sent = self._connecting.session, self.backlog.sent
        if session is None or not sent or not sent[0][1].is_done:
            return
        ends, partitions, transaction = session.ends, session.partitions, self._transaction
        lines, size = len(sent), 0
        try:
            while sent and (receipt := sent[0][1]).is_done:
                if receipt.exception is not None:
                    raise self._cause(session)
                value, position = sent.popleft()[0]
                offset = receipt.value.offset
                if offset >= 0:
                    ends[position.partition % partitions] = offset + 1
                if transaction is not None:
                    transaction.add(position)
                size += len(value)
        finally:
            self.backlog.acknowledged(lines - len(sent), size)
        self._moved = self._clock()
        self._breaks = 0

    def _cause(self, session: Session) -> Exception:
        """Find the line the others failed with."""
        sent = self.backlog.sent
        failed = [(line, receipt.exception) for line, receipt in sent if receipt.exception is not None]
        line, error = next(((line, error) for line, error in failed if not session.follows(error)), failed[0])
        return session.explain(error, line)

    def _break(self, error: Broken) -> None:
        """Leave the session, and have another one go on."""
        self._breaks += 1
        if self._breaks > _MOST_BREAKS:
            raise SinkError(f"the broker refuses the lines again and again ({error})")
        session = self._connecting.session
        transactional = session is not None and session.transactional
        _log.log(logging.WARNING if transactional else logging.DEBUG, "%s: connecting anew: %s", self._place, error)
        self._connecting.reason = str(error)
        self._moved = self._clock()  # a broker answered: the next session has its time, too
        self._leave()

    def _leave(self) -> None:
        session = self._connecting.session
        assert session is not None
        # What was not acknowledged may stand there all the same: the next session finds it. It is also to find what was
        # acknowledged in a transaction, which is no proof that it counts.
        self._doubtful, self._transaction = self._transaction, None
        self._mark = self.mark(session.ends if self._doubtful is None else self._doubtful.ends)
        self.backlog.take_back()
        self._connecting.begin(self._mark, self._connecting.leave())

    def _look(self) -> None:
        """Look whether anything moves, and say so once when nothing does."""
        silent = self._clock() - self._moved
        if self.idle or silent < _SILENT_SECONDS:
            self._silence.ends()
            return
        self._silence.begins(self._moved, self._connecting.failure)
        session = self._connecting.session
        if session is None:
            return
        if session.transactional:
            self._silence.check_transaction(session)
        elif silent > _ANEW_SECONDS:
            self._moved = self._clock() - _SILENT_SECONDS
            self._leave()
