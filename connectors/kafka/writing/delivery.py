"""Delivers lines to a topic on a thread: by one producer, and by the next one when that fails, until they count."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal, TypeAlias

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.base.outage import Outage
from streamkernel.connectors.kafka.writing.copying import CopyLimits
from streamkernel.connectors.kafka.writing.line import Line, Provenance, size_of
from streamkernel.connectors.kafka.writing.mark import LastLines, Marker, OutputMark, compare, disagreement
from streamkernel.connectors.kafka.writing.producer import Broken, TopicProducer
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
# The lines that the producer gets at once: it needs twice their memory.
_MOST_LINES, _MOST_BYTES = 5000, 2**25
# Failures one after the other without a line between: then it is no accident.
_MOST_BREAKS = 5


class Delivery:
    """The lines of a sink that do not count yet, in order, and the thread that sends and commits them.

    The first lines are acknowledged by the present producer; those of the last mark are sealed. Without transactions a
    line counts as soon as it is acknowledged.

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
    ) -> None:
        self.error: Exception | None = None
        self._place = place
        self._connect = connect
        self._transactional_id = transactional_id
        self._existing: Existing = existing
        self._limits = limits
        self._resumed = mark is not None
        known = mark or OutputMark("", secrets.token_hex(4), transactional_id)
        self._provenance = Provenance(known.writer)
        self._writer, self._stream = known.writer, known.stream
        self._committed, self._number = known.committed, known.number
        # The last lines that the topic has, and those up to which an older checkpoint has no lines to write.
        self._last = LastLines(None if known.committed else {})
        self._skipped = LastLines.from_text(known.skipped)
        self._lines = list(known.lines)
        self._sealed, self._acked = len(self._lines), 0
        self._bytes, self._acked_bytes = size_of(self._lines), 0
        # A durable checkpoint has the sealed lines: they are to be committed.
        self._committing = bool(self._lines)
        self._earlier_id = None if known.transactional_id == transactional_id else known.transactional_id
        self._renamed = self._earlier_id is not None
        self._reached = self._hurried = self._pressed = False
        self._breaks = 0
        self._failure: Callable[[], str] = lambda: "no answer"
        self._moved = time.monotonic()
        down = "nothing is acknowledged (%s): lines wait in memory"
        self._outage = Outage(_log, place, down, "lines are acknowledged again after %.0f s")
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
                self._moved = time.monotonic()
            self._add(lines)
        self._check()

    def _add(self, lines: Iterable[Line]) -> None:
        new = [line for line in lines if not self._skipped.skips(line.position)] if self._skipped else list(lines)
        self._lines += new
        self._bytes += size_of(new)
        self._changed.notify_all()

    @property
    def _settled(self) -> bool:
        return self._reached and not self._committing and self._acked == len(self._lines)

    @property
    def unacked(self) -> tuple[int, int]:
        """How many lines are not acknowledged, and how many bytes of memory they take."""
        with self._changed:
            return len(self._lines) - self._acked, self._bytes - self._acked_bytes

    @property
    def uncommitted(self) -> int:
        """How many lines do not count yet."""
        return len(self._lines)

    @property
    def commit_bytes(self) -> int:
        """How many bytes of memory the lines take that wait for `commit`; 0 while others are being committed."""
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
                    if time.monotonic() - self._moved > patience:
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
            self._sealed = len(self._lines)
            self._number += bool(self._lines)
            return OutputMark(
                *(self._stream, self._writer, self._transactional_id),
                *(self._committed, self._number if self._lines else self._committed),
                *(list(self._lines), self._skipped.to_text()),
            )

    def hurry(self) -> None:
        """Let the lines not wait for others."""
        with self._changed:
            self._pressed = True
            self._changed.notify_all()

    def commit(self) -> None:
        """Commit the lines of the last mark, now that it is durable, without waiting for it."""
        with self._changed:
            if self._sealed:
                assert self._sealed == len(self._lines), "lines came between the mark and its commit"
                self._committing = True
                self._moved = time.monotonic()
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
                    with self._changed:
                        self._acked = self._acked_bytes = 0  # the next producer sends every line
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

    def _agree(self, producer: TopicProducer) -> None:
        """Find out which lines the topic has, before the first one is sent."""
        found, self._failure = producer.found, producer.failure
        self._limits.topic = found
        same = self._stream in ("", found.stream)
        if not same:
            _log.warning(
                "kafka topic %s is not the one of the checkpoint, which was %s: new lines are appended to it",
                *(found.stream, self._stream),
            )
        if producer.transactional_id is not None:
            marker = producer.marker()
            self._compare(marker, same)
            now = Marker(self._committed, self._writer, self._last.to_text())
            if self._earlier_id is None and (marker is None or marker[:2] != now[:2]):
                producer.commit(now, self._patient)
        with self._changed:
            self._stream, self._moved = found.stream, time.monotonic()
            self._reached = self._earlier_id is None
            self._changed.notify_all()

    def _compare(self, marker: Marker | None, same: bool) -> None:
        """Take over what the broker has; refuse a topic with other lines, unless lines may be appended to it."""
        lines = self._lines[: self._sealed] if self._committing else []
        mark = OutputMark(self._stream, self._writer, None, self._committed, self._number, lines)
        if marker is not None and marker.writer == self._writer and marker.number >= self._committed:
            self._last = LastLines.from_text(marker.last)
        answer = compare(marker, mark, same, self._renamed)
        if answer == "committed":
            self._settle()
        elif answer == "older" and marker is not None:
            self._catch_up(marker)
        elif answer == "other":
            sentence, advice = disagreement(marker, mark, str(self._transactional_id), self._resumed)
            if self._existing == "refuse":
                raise SinkError(f"{sentence}: {advice}")
            _log.warning("%s: %s: the topic may have lines twice from now on (existing: append)", self._place, sentence)

    def _catch_up(self, marker: Marker) -> None:
        """Continue an older checkpoint: forget its lines, which the topic has, and skip those that come again."""
        _log.warning(
            "%s: the checkpoint ends with transaction %d, and the topic with %d: lines up to it are not written again",
            *(self._place, self._number, marker.number),
        )
        with self._changed:
            self._skipped = LastLines.from_text(marker.last)
            self._number = marker.number
            new = self._lines[self._sealed :]
            self._lines, self._bytes = [], 0
            self._add(new)
            self._sealed = 0
        self._settle()

    def _settle(self) -> None:
        """Forget the sealed lines: they are committed."""
        with self._changed:
            self._bytes -= size_of(self._lines[: self._sealed])
            del self._lines[: self._sealed]
            self._sealed = self._acked = self._acked_bytes = 0
            self._committing, self._committed = False, self._number
            self._moved, self._breaks = time.monotonic(), 0
            self._outage.end()
            self._changed.notify_all()

    def _serve(self, producer: TopicProducer) -> None:
        """Send lines and commit them, until the delivery is closed or fails."""
        while not self._closed.is_set():
            if self._earlier_id is not None and not self._committing:
                self._earlier_id = None  # all is settled under the earlier name
                return
            lines = self._next(producer.linger)
            if lines:
                producer.send([*map(self._limits.fit, lines)], self._provenance, self._patient)
            elif self._committing:
                last = self._last.after(line.position for line in self._lines[: self._sealed])
                producer.commit(Marker(self._number, self._writer, last.to_text()), self._patient)
                self._last = last
                self._settle()
            else:
                producer.verify()
            self._look()

    def _next(self, linger: float) -> list[Line]:
        """Return the next lines to send, some more of them after a short wait; none if none came."""
        with self._changed:
            if not self._committing:
                if self._acked == len(self._lines):
                    self._changed.wait(_IDLE_SECONDS)
                if self._acked < len(self._lines):
                    self._changed.wait_for(self._should_send, linger)
            self._pressed = False
            end = self._sealed if self._committing else len(self._lines)
            lines = self._lines[self._acked : min(end, self._acked + _MOST_LINES)]
        while len(lines) > 1 and size_of(lines) > _MOST_BYTES:
            lines = lines[: len(lines) // 2]
        return lines

    def _should_send(self) -> bool:
        many = len(self._lines) - self._acked >= _MOST_LINES
        return many or self._hurried or self._pressed or self._committing or self._closed.is_set()

    def _patient(self, acknowledged: int = 0) -> bool:
        """Count lines that are acknowledged, and return whether the producer is to try on."""
        if acknowledged:
            with self._changed:
                size = size_of(self._lines[self._acked : self._acked + acknowledged])
                if self._earlier_id or self._transactional_id:
                    self._acked += acknowledged
                    self._acked_bytes += size
                else:
                    del self._lines[:acknowledged]
                    self._bytes -= size
                    self._breaks = 0
                self._moved = time.monotonic()
                self._changed.notify_all()
        self._look()
        if time.monotonic() - self._moved > _ANEW_SECONDS:
            self._moved = time.monotonic() - SILENT_SECONDS  # the next producer has as long
            return False
        return not self._closed.is_set()

    def _look(self) -> None:
        """Log when nothing is acknowledged for some seconds, and when that is over."""
        if not self._settled and time.monotonic() - self._moved >= SILENT_SECONDS:
            self._outage.begin(self._failure(), self._moved)
        elif self._settled or self._reached:
            self._outage.end()
