"""Lines to a topic of Kafka, each exactly once."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias

from connectors.encode import to_json
from connectors.kafka.client import Unreachable
from connectors.kafka.writing.earlier import Answer, Earlier
from connectors.kafka.writing.mark import OutputMark, Producer
from connectors.kafka.writing.output import Output
from connectors.kafka.writing.session import Broken, Connect, Line, Receipt, Session
from connectors.kafka.writing.transaction import Transaction
from connectors.kafka.writing.watched import watched
from connectors.ports import ConnectorError, Mark, OutageError, Position, Sink, SinkError

__all__ = ["KafkaSink", "Shorten"]

_log = logging.getLogger(__name__)

Shorten: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, Any]]
"""Makes a line that takes at most so many bytes as JSON."""

# What the producer holds takes twice the memory of what waits here.
_MOST_SENT, _MOST_SENT_BYTES = 20_000, 2**25
# What a line that waits takes beside its bytes.
_OVERHEAD_BYTES = 250
_OPEN_SECONDS = 5.0
# How long a checkpoint waits for a broker that says nothing. A stop, with what it tries, must be over in ten seconds.
_PATIENCE_SECONDS = 3.0
_CLOSE_SECONDS = 2.0
_SILENT_SECONDS = 5.0
# A cluster whose brokers all moved is found again by its first addresses, not by those the client knows.
_ANEW_SECONDS = 60.0
# By then the broker has ended the transaction, and said so.
_MARGIN_SECONDS = 60.0
_LONGEST_PAUSE = 5.0
_NAP_SECONDS = 0.1
# Breaks one after the other without a line between: then it is no accident.
_MOST_BREAKS = 5
# The beginning of a file has mostly fewer lines, and what is not told by then is not waited for.
_MOST_LOOKED_AT, _HELD_SECONDS = 512, 1.0
# What Kafka allows by default, less what the line has about it.
_SAFE_BYTES = 2**20 - 4096
_ABOUT_BYTES = 4096


class KafkaSink(Sink):
    """Write lines to a topic, as JSON.

    The value of a message is the line; `connectors.kafka.writing.stamps.Stamp` says what its key and its headers are.
    The lines of a partition of the source go to one partition of the topic (its number modulo theirs), in order.

    After a restart, what stands in the topic behind the mark is read, and a line that is there is not written again.
    With a `transactional_id` lines count for consumers (that read what is committed) when `flush` returns, and a second
    sink with that id shuts the first one out. Without one they count at once. A process that was killed may still have
    a request under way then; its successor goes on under the same name and number, so that the broker takes the one or
    the other, and reads again what it missed.

    While no broker acknowledges anything, lines wait in memory; whoever writes them looks at `waiting`.

    Parameters
    ----------
    topic
        Its name; a topic that is not there is never made.
    bootstrap_servers
        ``"host:port"``, several of them with commas between, or a list.
    transactional_id
        What the broker knows the writer by, of one sink alone; None: no transactions.
    compression
        ``"gzip"``, ``"snappy"``, ``"lz4"``, ``"zstd"`` or None.
    options
        Settings of kafka-python by its own names, such as ``security_protocol``.
    shorten
        What to do with a line the topic would refuse as too large; None: it ends the sink.
    existing
        What to do without a mark where the topic holds lines for records of the same partition of the source:
        ``"refuse"`` the first line for one of them, or ``"append"`` it. The last 10,000 offsets are looked at.
    connect
        Makes the sessions; a test may have other ones than those of kafka-python.
    clock
        Gives seconds, and never goes back.

    Raises
    ------
    ValueError
        For an option that is not the user's to set, and for a compression that is not installed.

    """

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str | Sequence[str],
        transactional_id: str | None = None,
        compression: str | None = None,
        options: Mapping[str, Any] | None = None,
        shorten: Shorten | None = None,
        existing: Literal["refuse", "append"] = "refuse",
        connect: Connect | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.topic = topic
        self.servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
        self.transactional_id = transactional_id
        self._output = Output(topic, self.servers.split(","), transactional_id, compression, options or {})
        self._connect = connect or self._output.connect
        self._shorten = shorten
        self._existing = existing
        self._clock = clock
        self._is_open = False
        self._begin_anew(None)

    def _begin_anew(self, mark: Mark | None) -> None:
        self._mark = mark
        self._closed = threading.Event()
        self._queue: deque[Line] = deque()
        self._sent: deque[tuple[Line, Receipt]] = deque()
        self._bytes = self._sent_bytes = 0
        self._session: Session | None = None
        self._work: tuple[Future[Any], Callable[[Future[Any]], None]] | None = None
        self._transaction: Transaction | None = None
        self._doubtful: Transaction | None = None
        self._failed = False
        self._attempt = self._breaks = 0
        self._again_at = 0.0
        self._moved = self._clock()
        self._earlier = Earlier({})
        self._hurried = False
        self._held_since: float | None = None
        self._reason = "no answer"
        self._before: Producer | None = None
        self._down_since: float | None = None
        self._answered_since: float | None = None

    def open(self, mark: Mark | None = None) -> None:
        """Connect, for some seconds; where no broker answers, it goes on while lines wait. See `Sink.open`.

        What a topic holds already cannot be cut off: without a mark, lines are appended to it, but for those of records
        that have one there (see `existing`).

        Raises
        ------
        SinkError
            When trying again would not help: there is no such topic, the credentials or the TLS settings are wrong,
            this is not allowed, or the topic ends before the mark.

        """
        self.close()
        self._begin_anew(mark)
        self._is_open = True
        self._reach()
        deadline = self._clock() + _OPEN_SECONDS
        while self._session is None and self._clock() < deadline:
            self._nap()
            self._pump()
        if self._session is None:
            self._down()

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position]) -> None:
        """Take lines, each with the position of its record; see `Sink.write`.

        Raises
        ------
        SinkError
            Also for lines before these: when one is too large for the topic, writing is not allowed (any more), another
            sink has the same transactional id, or the topic is deleted.

        """
        self._check_open()
        if lines and self._idle:
            self._moved = self._clock()
        queue, most, taken = self._queue, self._most_bytes, 0
        for line, position in zip(lines, positions, strict=True):
            value = to_json(line)
            if len(value) > most and self._shorten is not None:
                value = to_json(self._shorten(line, most))
            queue.append(Line(value, position))
            taken += len(value) + _OVERHEAD_BYTES
        self._bytes += taken
        self._pump()

    def flush(self) -> Mark:
        """Wait until every line is acknowledged, and commit them where there are transactions; see `Sink.flush`.

        Raises
        ------
        OutageError
            When no broker acknowledged anything for some seconds.
        SinkError
            As `write`.

        """
        self._check_open()
        self._complete(_PATIENCE_SECONDS)
        return self._mark_now()

    @property
    def waiting(self) -> int:
        """How many lines are not acknowledged."""
        return len(self._queue) + len(self._sent)

    @property
    def waiting_bytes(self) -> int:
        """How much memory the lines take that are not acknowledged, about."""
        return self._bytes

    @property
    def exactly_once(self) -> bool:
        """True: a line that stands in the topic is not written again."""
        return True

    def describe(self) -> str:
        """Return a phrase such as ``"kafka topic predictions at broker:9092"``."""
        return f"kafka topic {self.topic} at {self.servers}"

    def probe(self) -> str:
        """Try to reach the topic, without writing to it or shutting out who does, and describe it.

        Raises
        ------
        SinkError
            When it cannot be reached, or writing to it is not allowed.

        """
        try:
            survey = self._output.survey()
        except (Unreachable, ConnectorError) as error:
            raise SinkError(f"{self.describe()}: {error}") from None
        survey.close()
        return self.describe()

    def find_problem(self, mark: Mark | None = None) -> None:  # noqa: ARG002 - what it says needs the topic read
        """Raise what a topic refuses without being written to; a broker that is not there is no problem. See `Sink`."""
        try:
            self._output.survey().close()
        except Unreachable:
            return
        except ConnectorError as error:
            raise SinkError(f"{self.describe()}: {error}") from None

    def close(self) -> None:
        """Flush, for some seconds, and end the connections; closing twice does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            if (self.waiting or self._transaction) and not self._failed:
                # What failed was told, and a restart writes it again.
                self._complete(_CLOSE_SECONDS)
        finally:
            self._closed.set()
            if self._session is not None:
                self._session.abandon()

    def _complete(self, patience: float) -> None:
        """Wait until every line counts."""
        self._hurried = True
        try:
            self._settle(patience)
        finally:
            self._hurried = False
        while self._transaction is not None:
            assert self._session is not None
            self._start(self._session.commit, self._committed)
            self._moved = self._clock()
            self._settle(patience)

    @property
    def _idle(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._session is not None and self._work is None and not self.waiting

    def _check_open(self) -> None:
        if not self._is_open:
            raise SinkError(f"{self.describe()}: the sink is not open")

    @property
    def _most_bytes(self) -> int:
        largest = None if self._session is None else self._session.largest
        return _SAFE_BYTES if largest is None else max(largest - _ABOUT_BYTES, largest // 2)

    def _start(self, call: Callable[[], Any], then: Callable[[Future[Any]], None]) -> None:
        """Begin what may wait for ever; `then` looks at what became of it."""
        self._work = watched(call, f"kafka-{self.topic}"), then

    def _reach(self, old: Session | None = None) -> None:
        """Begin to connect, after the end of an old session."""
        mark, attempt, closed, before = self._mark, self._attempt, self._closed, self._before

        def connect() -> Session:
            if old is not None:
                old.abandon()
            session = self._connect(mark, attempt, closed.is_set, before)
            if closed.is_set():
                session.abandon()
                raise Unreachable("it is closed")
            return session

        self._start(connect, self._reached)

    def _reached(self, future: Future[Any]) -> None:
        try:
            self._session = future.result()
        except Unreachable as error:
            self._reason = str(error)
            self._again_at = self._clock() + min(_LONGEST_PAUSE, 2.0**self._attempt)
            self._attempt += 1
        else:
            self._attempt = 0
            self._before = self._session.producer
            self._earlier = Earlier(self._session.earlier)
            self._resolve(self._session)
            self._moved = self._clock()

    def _resolve(self, session: Session) -> None:
        """Find out what became of the transaction that the session before was in."""
        doubtful, self._doubtful = self._doubtful, None
        missing = 0 if doubtful is None else doubtful.missing(session.emitted)
        if missing:
            raise SinkError(
                f"{missing:,} lines that were acknowledged are not there any more, because their transaction was ended "
                f"({self._reason}); start again, nothing is lost"
            )

    def _committed(self, future: Future[Any]) -> None:
        future.result()
        self._transaction = None
        self._moved = self._clock()

    def _proven(self, future: Future[Any]) -> None:
        assert self._session is not None
        offset = future.result()
        line = self._queue.popleft()
        self._bytes -= len(line.value) + _OVERHEAD_BYTES
        self._session.ends[line.position.partition % self._session.partitions] = offset + 1
        self._moved = self._clock()
        self._breaks = 0

    def _settle(self, patience: float) -> None:
        """Wait until nothing waits any more."""
        while True:
            self._pump()
            if self._idle:
                return
            if self._clock() - self._moved > patience:
                reason = self._reason if self._session is None else self._session.failure()
                what = f"{self.waiting:,} lines wait" if self.waiting else "the end of a transaction waits"
                what = what if self._session is not None or self.waiting else "it was not reached yet"
                raise OutageError(f"{self.describe()}: nothing is acknowledged ({reason}), {what}")
            self._nap()

    def _nap(self) -> None:
        if self._work is not None:
            wait([self._work[0]], _NAP_SECONDS)
        elif self._session is not None and self._sent:
            self._session.wait(_NAP_SECONDS)
        else:
            time.sleep(_NAP_SECONDS / 10)

    def _pump(self) -> None:
        """Move everything on that can be moved."""
        try:
            try:
                self._move()
            except Broken as error:
                self._break(error)
        except ConnectorError as error:
            self._failed = True
            raise SinkError(f"{self.describe()}: {error}") from None

    def _move(self) -> None:
        self._reap()
        if self._work is not None and self._work[0].done():
            (future, then), self._work = self._work, None
            then(future)
        if self._work is None and self._session is None and self._clock() >= self._again_at:
            self._reach()
        if self._work is None and self._session is not None and self._session.verify():
            self._send(self._session)
        self._look()

    def _send(self, session: Session) -> None:
        queue, sent = self._queue, self._sent
        emitted, unproven, partitions, earlier = session.emitted, session.unproven, session.partitions, session.earlier
        while queue and len(sent) < _MOST_SENT and self._sent_bytes < _MOST_SENT_BYTES:
            line = queue[0]
            if emitted and emitted.take(line.position):
                queue.popleft()
                self._bytes -= len(line.value) + _OVERHEAD_BYTES
                continue
            if earlier and not self._decide(line.position):
                return
            if unproven and line.position.partition % partitions in unproven:
                if not sent:
                    self._start(partial(session.prove, line), self._proven)
                return
            if session.transactional and self._transaction is None:
                session.begin()
                self._transaction = Transaction(session.ends)
            sent.append((line, session.send(line)))
            queue.popleft()
            self._sent_bytes += len(line.value)

    def _decide(self, position: Position) -> bool:
        """Refuse, or append to, lines of runs that nothing is known of; False: more must come to tell."""
        final = self._hurried or len(self._queue) > _MOST_LOOKED_AT or self._held_for_long()
        answer = self._earlier.look(position, self._behind, final)
        if answer is Answer.UNKNOWN:
            self._moved = self._clock()
            self._held_since = self._moved if self._held_since is None else self._held_since
            return False
        self._held_since = None
        if answer is Answer.NEW:
            return True
        there = (
            f"{self._earlier.count(position, self._behind):,} of the last lines there are for records of the same "
            f"source, partition {position.partition}, and no checkpoint says which"
        )
        if self._existing == "refuse":
            raise SinkError(
                f"{there}: put the checkpoint directory back that they belong to, name another topic, or set "
                "existing: append for this output, which writes the lines of all records once more"
            )
        _log.warning("%s: %s: they stand there twice from now on (existing: append)", self.describe(), there)
        self._earlier.accept(position, self._behind)
        return True

    def _behind(self) -> list[Position]:
        return [line.position for line in islice(self._queue, 1, _MOST_LOOKED_AT)]

    def _held_for_long(self) -> bool:
        return self._held_since is not None and self._clock() - self._held_since > _HELD_SECONDS

    def _reap(self) -> None:
        """Note what is acknowledged."""
        session, sent = self._session, self._sent
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
            self._sent_bytes -= size
            self._bytes -= size + (lines - len(sent)) * _OVERHEAD_BYTES
        self._moved = self._clock()
        self._breaks = 0

    def _cause(self, session: Session) -> Exception:
        """Find the line the others failed with."""
        failed = [(line, receipt.exception) for line, receipt in self._sent if receipt.exception is not None]
        line, error = next(((line, error) for line, error in failed if not session.follows(error)), failed[0])
        return session.explain(error, line)

    def _break(self, error: Broken) -> None:
        """Leave the session, and have another one go on."""
        self._breaks += 1
        if self._breaks > _MOST_BREAKS:
            raise SinkError(f"the broker refuses the lines again and again ({error})")
        transactional = self._session is not None and self._session.transactional
        _log.log(logging.WARNING if transactional else logging.DEBUG, "%s: connecting anew: %s", self.describe(), error)
        self._reason = str(error)
        self._leave()

    def _leave(self) -> None:
        old = self._session
        assert old is not None
        # What was not acknowledged may stand there all the same: the next session finds it. It is also to find what was
        # acknowledged in a transaction, which is no proof that it counts.
        self._doubtful, self._transaction = self._transaction, None
        self._mark = self._mark_now(old.ends if self._doubtful is None else self._doubtful.ends)
        self._queue.extendleft(line for line, _ in reversed(self._sent))
        self._sent.clear()
        self._sent_bytes = 0
        self._session = None
        self._reach(old)

    def _mark_now(self, ends: Mapping[int, int] | None = None) -> dict[str, Any]:
        """Make a mark: of lines that all count, or, given where it ended, of a topic where some may not."""
        session = self._session
        assert session is not None
        return OutputMark(
            session.stream,
            session.writer,
            dict(session.ends if ends is None else ends),
            session.producer,
            self.transactional_id,
            session.emitted.runs(),
            session.sequences if ends is None else {},
            session.emitted.passed,
            session.earlier,
        ).to_json()

    def _look(self) -> None:
        """Look whether anything moves, and say so once when nothing does."""
        silent = self._clock() - self._moved
        if self._idle or silent < _SILENT_SECONDS:
            self._up()
            return
        self._down()
        session = self._session
        if session is None:
            return
        if session.transactional:
            self._check_transaction(session)
        elif silent > _ANEW_SECONDS:
            self._moved = self._clock() - _SILENT_SECONDS
            self._leave()

    def _check_transaction(self, session: Session) -> None:
        """End what never ends: where brokers answer for longer than a transaction may take, it is none of theirs."""
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

    def _down(self) -> None:
        if self._down_since is None:
            self._down_since = self._moved
            reason = self._reason if self._session is None else self._session.failure()
            _log.warning("%s: nothing is acknowledged (%s): lines wait in memory until it is", self.describe(), reason)

    def _up(self) -> None:
        self._answered_since = None
        if self._down_since is not None:
            _log.info(
                "%s: lines are acknowledged again after %.0f s", self.describe(), self._clock() - self._down_since
            )
            self._down_since = None
