"""Delivers lines to a topic on a thread: by one producer, and by the next one when that fails, until they count."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeAlias

from kafka import errors

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.base.outage import Outage
from streamkernel.connectors.kafka.writing.agreement import disagreement
from streamkernel.connectors.kafka.writing.copy_limits import CopyLimits
from streamkernel.connectors.kafka.writing.last_lines import LastLines
from streamkernel.connectors.kafka.writing.line import Line, Provenance
from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.kafka.writing.producer import Broken, Marker, Receipt, TopicProducer
from streamkernel.connectors.ports import ConnectorError, OutageError, SinkError

__all__ = ["Connect", "Delivery", "Existing"]

_log = logging.getLogger(__name__)

Connect: TypeAlias = Callable[[str | None, int], TopicProducer]
"""Makes a producer with a transactional id, given how many attempts failed before."""

Existing: TypeAlias = Literal["refuse", "append"]
"""What to do where the broker and the checkpoint disagree on the lines in the topic."""

SILENT_SECONDS = 5.0
# A cluster whose brokers all moved is found again by its first addresses, not by those the client knows.
_ANEW_SECONDS = 60.0
_LONGEST_PAUSE = 5.0
_NAP_SECONDS, _IDLE_SECONDS = 0.02, 0.5
# Failures one after the other without a line between: then it is no accident.
_MOST_BREAKS = 5
# The producer needs twice the memory of the lines it holds.
_MOST_SENT, _MOST_SENT_BYTES, _MOST_AT_ONCE = 20_000, 2**25, 1000


class Delivery:
    """The lines of a sink that do not count yet, and the thread that sends and commits them.

    Parameters
    ----------
    place, name
        The beginning of sentences about it, and the name of its thread.
    connect
        Makes a producer.
    transactional_id
        The name by which the broker knows the writer; None: no transactions.
    existing
        What to do where the broker and the mark disagree.
    limits
        What lines may copy.
    mark
        That of the checkpoint to continue; None: there is none.
    clock
        Gives seconds, and never goes back.

    Attributes
    ----------
    error
        What ended the delivery for good; None while nothing did.

    """

    def __init__(
        self,
        place: str,
        name: str,
        connect: Connect,
        transactional_id: str | None,
        existing: Existing,
        limits: CopyLimits,
        mark: OutputMark | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.error: Exception | None = None
        self._place = place
        self._connect = connect
        self._transactional_id = transactional_id
        self._existing: Existing = existing
        self._limits = limits
        self._clock = clock
        self._mark = mark
        known = mark or OutputMark("", secrets.token_hex(4))
        self._provenance = Provenance(known.writer)
        self._writer, self._stream = known.writer, known.stream
        self._committed, self._number = known.committed, known.number
        # The last lines that the topic has, and those up to which an older checkpoint has no lines to write.
        self._last, self._skipped = LastLines(), LastLines.from_text(known.skipped)
        # The checkpoint with these lines is durable: they are to be committed.
        self._lines, self._sealed, self._committing = list(known.lines), len(known.lines), bool(known.lines)
        self._sent = self._acked = 0
        self._receipts: deque[Receipt] = deque()
        self._sent_bytes = 0
        self._bytes = self._unacked_bytes = sum(line.size for line in self._lines)
        self._earlier_id = None if mark is None or mark.transactional_id == transactional_id else mark.transactional_id
        self._renamed = self._earlier_id is not None
        self._reached = self._hurried = False
        self._breaks = 0
        self._failure: Callable[[], str] = lambda: "no answer"
        self._moved = clock()
        down = "nothing is acknowledged (%s): lines wait in memory"
        self._outage = Outage(_log, place, down, "lines are acknowledged again after %.0f s", clock)
        self._closed = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self, seconds: float) -> None:
        """Begin to connect, and wait until that is done, but no longer than some seconds."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._reached or self.error is not None, seconds)
        self._check()

    def put(self, lines: Sequence[Line]) -> None:
        """Take lines; raises what ended the delivery."""
        with self._changed:
            if self._settled:
                self._moved = self._clock()
            lines = [line for line in lines if not self._skipped.skips(line.position)]
            self._lines += lines
            size = sum(line.size for line in lines)
            self._bytes += size
            self._unacked_bytes += size
            self._changed.notify_all()
        self._check()

    @property
    def _settled(self) -> bool:
        return self._reached and not self._committing and self._acked == len(self._lines)

    @property
    def unacked(self) -> tuple[int, int]:
        """How many lines are not acknowledged, and how many bytes of memory they take."""
        with self._changed:
            return len(self._lines) - self._acked, self._unacked_bytes

    @property
    def uncommitted(self) -> int:
        """How many lines do not count yet."""
        with self._changed:
            return len(self._lines)

    @property
    def commit_bytes(self) -> int:
        """How many bytes of memory the lines take that wait for `commit`; 0 while others are being committed."""
        with self._changed:
            return 0 if self._committing else self._bytes

    def complete(self, patience: float) -> None:
        """Wait until every line is acknowledged, and the sealed ones are committed.

        Raises `OutageError` where nothing moved within the timeout, `SinkError` where the delivery has ended.
        """
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            try:
                while not self._settled and self.error is None:
                    if self._clock() - self._moved > patience:
                        raise self._outage_error()
                    self._changed.wait(_NAP_SECONDS)
            finally:
                self._hurried = False
        self._check()

    def _outage_error(self) -> OutageError:
        n_waiting = len(self._lines) - self._acked
        what = f"{n_waiting:,} lines wait" if n_waiting else "the end of a transaction waits"
        if not (n_waiting or self._reached):
            what = "it was not reached yet"
        return OutageError(f"{self._place}: nothing is acknowledged ({self._failure()}), {what}")

    def seal(self) -> OutputMark:
        """Return the mark of all lines, once they are complete; nothing but `commit` commits them."""
        with self._changed:
            if self._transactional_id is None:
                return OutputMark(self._stream, self._writer)
            if self._lines:
                self._number, self._sealed = self._number + 1, len(self._lines)
            return OutputMark(
                *(self._stream, self._writer, self._transactional_id),
                *(self._committed, self._number if self._lines else self._committed, list(self._lines)),
                self._skipped.to_text(),
            )

    def commit(self) -> None:
        """Commit the lines of the last mark, now that it is durable, without waiting for it."""
        with self._changed:
            if self._sealed:
                assert self._sealed == len(self._lines), "lines came between the mark and its commit"
                self._committing = True
                self._moved = self._clock()
                self._changed.notify_all()

    def close(self, seconds: float) -> None:
        """Wait some seconds for what is being committed, and end the connection."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.error is not None or not self._committing, seconds)
            if self._committing and self.error is None:
                _log.warning(
                    "%s: %d lines are not committed (%s): they are in the checkpoint, and the next start commits them",
                    *(self._place, self._sealed, self._failure()),
                )
            self._closed.set()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _check(self) -> None:
        if self.error is not None:
            raise SinkError(f"{self._place}: {self.error}")

    def _run(self) -> None:
        attempt = 0
        while not self._closed.is_set() and self.error is None:
            try:
                producer = self._connect(self._earlier_id or self._transactional_id, attempt)
                try:
                    self._agree(producer)
                    attempt = 0
                    self._serve(producer)
                finally:
                    self._take_back()
                    producer.close()
            except Unreachable as error:
                self._failure = partial(str, error)
                self._look()
                self._closed.wait(min(_LONGEST_PAUSE, 2.0 ** min(attempt, 10)))
                attempt += 1
            except Broken as error:
                self._break(error)
            except ConnectorError as error:
                self._fail(error)
            except Exception as error:  # whatever it is, the daemon must hear of it, and not wait forever
                _log.debug("the full traceback", exc_info=error)
                self._fail(SinkError(f"the client of Kafka failed: {type(error).__name__}: {error}"))

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self.error = error
            self._changed.notify_all()

    def _break(self, error: Broken) -> None:
        self._failure = partial(str, error)
        self._breaks += not error.passes
        if self._breaks > _MOST_BREAKS:
            self._fail(SinkError(f"the broker refuses the lines again and again ({error})"))
            return
        level = logging.DEBUG if self._transactional_id is None else logging.WARNING
        _log.log(level, "%s: connecting again: %s", self._place, error)
        self._closed.wait(_NAP_SECONDS)

    def _take_back(self) -> None:
        """Count every line as not sent: the next producer sends it."""
        with self._changed:
            self._sent = self._acked = self._sent_bytes = 0
            self._unacked_bytes = self._bytes
            self._receipts.clear()

    def _agree(self, producer: TopicProducer) -> None:
        """Find out which lines the topic has, before the first one is sent."""
        found, self._failure = producer.found, producer.failure
        self._limits.set(found)
        same = self._stream in ("", found.stream)
        if not same:
            _log.warning(
                "kafka topic %s is not the one of the checkpoint, which was %s: new lines are appended to it",
                *(found.stream, self._stream),
            )
        if producer.transactional_id is not None:
            marker = producer.marker()
            number = None if marker is None or marker.writer != self._writer else marker.number
            if marker is not None and number is not None and number >= self._committed:
                self._last = LastLines.from_text(marker.last)
            if number == self._number and self._committing:
                self._settle()
            elif marker is not None and number is not None and number > self._number and same and marker.last:
                self._catch_up(number, marker.last)
            elif number != self._committed:
                self._disagree(marker, same)
            if self._earlier_id is None and number != self._committed:
                producer.begin(self._patient)
                producer.commit(self._marker(self._committed), self._patient)
        with self._changed:
            self._stream, self._moved = found.stream, self._clock()
            self._reached = self._earlier_id is None
            self._changed.notify_all()

    def _disagree(self, marker: Marker | None, same: bool) -> None:
        """Refuse a topic with other lines than the checkpoint says, unless lines may be appended to it."""
        if self._renamed and marker is not None and marker.writer == self._writer and marker.number <= self._committed:
            return  # this writer had the name before
        if not self._committing and (marker is None or marker.number == 0):
            return  # no lines are in doubt
        if marker is None and not same:
            return  # it went with the topic
        known = None if self._mark is None else Marker(self._number, self._writer)
        sentence, advice = disagreement(marker, known, str(self._transactional_id), self._sealed)
        if self._existing == "refuse":
            raise SinkError(f"{sentence}: {advice}")
        _log.warning("%s: %s: the topic may have lines twice from now on (existing: append)", self._place, sentence)

    def _marker(self, number: int) -> Marker:
        """Return the marker of a transaction."""
        return Marker(number, self._writer, self._last.to_text())

    def _catch_up(self, number: int, last: str) -> None:
        """Continue an older checkpoint: forget its lines, which the topic has, and skip those that come again."""
        _log.warning(
            "%s: the checkpoint ends with transaction %d, and the topic with %d: lines up to it are not written again",
            *(self._place, self._number, number),
        )
        with self._changed:
            self._committed = self._number = number
            self._skipped = LastLines.from_text(last)
            kept = [line for line in self._lines[self._sealed :] if not self._skipped.skips(line.position)]
            self._lines, self._sealed, self._committing = kept, 0, False
            self._bytes = self._unacked_bytes = sum(line.size for line in kept)
            self._changed.notify_all()

    def _settle(self) -> None:
        """Forget the sealed lines: they are committed."""
        with self._changed:
            gone = sum(line.size for line in self._lines[: self._sealed])
            self._bytes -= gone
            if not self._sent:  # they were committed by an earlier process or producer
                self._unacked_bytes -= gone
            del self._lines[: self._sealed]
            self._sent, self._acked = max(0, self._sent - self._sealed), max(0, self._acked - self._sealed)
            self._sealed, self._committing = 0, False
            self._committed, self._moved, self._breaks = self._number, self._clock(), 0
            self._outage.end()
            self._changed.notify_all()

    def _serve(self, producer: TopicProducer) -> None:
        """Send lines and commit them, until the delivery is closed or fails."""
        begun, verified = False, -_IDLE_SECONDS
        while not self._closed.is_set():
            if self._earlier_id is not None and not self._committing:
                self._earlier_id = None  # all is settled under the earlier name
                return
            if self._clock() - verified >= _IDLE_SECONDS:
                if not producer.verify():
                    self._look()
                    self._closed.wait(_NAP_SECONDS)
                    continue
                verified = self._clock()
            lines, whole = self._next()
            if lines:
                if producer.transactional_id is not None and not begun:
                    producer.begin(self._patient)
                    begun = True
                self._send(producer, lines)
            self._reap(producer)
            if whole:
                self._last.add(line.position for line in self._lines[: self._sealed])
                producer.commit(self._marker(self._number), self._patient)
                self._settle()
                begun = False
            elif self._hurried and self._receipts:
                producer.flush(0.1)
                self._reap(producer)
            self._look()
            if self._clock() - self._moved > _ANEW_SECONDS and not self._settled:
                self._moved = self._clock() - SILENT_SECONDS
                raise Unreachable(producer.failure())

    def _next(self) -> tuple[list[Line], bool]:
        """Wait for lines to send, and say whether the transaction is to be committed instead."""
        with self._changed:
            end = self._sealed if self._committing else len(self._lines)
            full = self._sent - self._acked >= _MOST_SENT or self._sent_bytes >= _MOST_SENT_BYTES
            lines = [] if full else self._lines[self._sent : min(end, self._sent + _MOST_AT_ONCE)]
            whole = self._committing and self._acked >= self._sealed
            if not lines and not whole and not (self._hurried and self._receipts):
                self._changed.wait(_NAP_SECONDS if self._receipts else _IDLE_SECONDS)
            return lines, whole

    def _patient(self) -> bool:
        self._look()
        return not self._closed.is_set() and self._clock() - self._moved <= _ANEW_SECONDS

    def _send(self, producer: TopicProducer, lines: Sequence[Line]) -> None:
        for line in lines:
            message = self._provenance.message(self._limits.fit(line))
            try:
                receipt = producer.send(line.position.partition, **message)
            except (errors.KafkaError, ValueError) as error:
                self._reap(producer)  # an earlier line may be the cause
                raise self._cause(producer, error, line) from None
            with self._changed:
                self._receipts.append(receipt)
                self._sent += 1
                self._sent_bytes += line.size

    def _reap(self, producer: TopicProducer) -> None:
        """Take note of what is acknowledged; raises what a failed line means."""
        receipts = self._receipts
        if not receipts or not receipts[0].is_done:
            return
        with self._changed:
            start = self._acked
            while receipts and receipts[0].is_done and receipts[0].exception is None:
                receipts.popleft()
                self._acked += 1
            size = sum(line.size for line in self._lines[start : self._acked])
            self._sent_bytes -= size
            self._unacked_bytes -= size
            if producer.transactional_id is None:
                self._bytes -= size
                del self._lines[: self._acked]
                self._sent, self._acked = self._sent - self._acked, 0
            if size:
                self._moved = self._clock()
                self._breaks = 0 if producer.transactional_id is None else self._breaks
            self._changed.notify_all()
        if receipts and receipts[0].is_done and receipts[0].exception is not None:
            failed = [(line, one.exception) for line, one in zip(self._lines[self._acked :], receipts, strict=False)]
            first = next(((line, why) for line, why in failed if why is not None and not _follows(why)), None)
            line, why = first or failed[0]
            raise self._cause(producer, why, line)

    def _cause(self, producer: TopicProducer, error: Exception, line: Line) -> Exception:
        if not self._limits.learns(line, error):
            return producer.explain(error, line)
        broken = Broken(f"{type(error).__name__}: {error}")
        broken.passes = True  # less is left to refuse
        return broken

    def _look(self) -> None:
        """Log when nothing is acknowledged for some seconds, and when that is over."""
        if self._settled:
            self._outage.end()
        elif self._clock() - self._moved >= SILENT_SECONDS:
            self._outage.begin(self._failure(), self._moved)
        elif self._reached:
            self._outage.end()


def _follows(error: Exception) -> bool:
    """Return whether a line failed only because another one did."""
    # kafka-python has no class of its own for a line that was refused with another one of its batch.
    return type(error) is errors.KafkaError or isinstance(
        error, errors.IllegalStateError | errors.TransactionAbortedError
    )
