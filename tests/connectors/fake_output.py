"""A topic in memory that a sink of Kafka writes to through the sessions it is given."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka import errors

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.writing.mark import OutputMark, Producer
from streamkernel.connectors.kafka.writing.session import Broken, Line, Refused
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.kafka.writing.written_lines import WrittenLines
from streamkernel.connectors.ports import Mark, OutageError, Position, SinkError
from tests.processes import wait_until


class Clock:
    """Goes on by itself a little each time it is looked at, so that nobody waits for ever."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


class Entry(NamedTuple):
    writer: str
    line: Line


class Metadata(NamedTuple):
    offset: int


class Receipt:
    def __init__(self) -> None:
        self.is_done = False
        self.exception: Exception | None = None
        self.value: Any = None


class FakeTopic:
    """What brokers keep of a topic, and how they behave.

    Attributes
    ----------
    logs
        By partition, what stands there; None where an offset holds no line.
    down
        Whether no broker answers.
    deaf
        Whether lines are appended, and nobody hears of it.
    refuses
        How it refuses a line; None where it takes it.
    ends
        Why it ends each transaction without a commit; None where it commits them.
    sessions
        All there were.

    """

    def __init__(self, partitions: int = 1, transactional: bool = False) -> None:
        self.logs: dict[int, list[Entry | None]] = {partition: [] for partition in range(partitions)}
        self.clock = Clock()
        self.transactional = transactional
        self.down = self.deaf = False
        self.largest: int | None = 1000
        self.stream = "cluster/out/1"
        self.refusal: Exception | None = None
        self.refuses: Callable[[Line], Exception | None] = lambda _: None
        self.ends: Exception | None = None
        self.sessions: list[FakeSession] = []
        self.before: Producer | None = None
        self.attempts = 0
        self._writers = 0

    def connect(
        self,
        given: Mark | None,
        attempt: int,
        cancelled: Callable[[], bool],  # noqa: ARG002
        before: Producer | None = None,
    ) -> FakeSession:
        self.attempts = attempt + 1
        if self.refusal is not None:
            raise self.refusal
        if self.down:
            raise Unreachable("it is down")
        mark = None if given is None else OutputMark.from_json(given)
        self.before = before
        if mark is None:
            self._writers += 1
        session = FakeSession(self, f"writer {self._writers}" if mark is None else mark.writer)
        for other in self.sessions:
            other.over = True
        self.sessions.append(session)
        if mark is None:
            session.existing = Counter(entry.line.position[:2] for log in self.logs.values() for entry in log if entry)
        else:
            session.existing = dict(mark.existing)
            found = [
                entry.line.position
                for partition, log in self.logs.items()
                for entry in log[mark.ends.get(partition, 0) :]
                if entry is not None and entry.writer == mark.writer
            ]
            session.written = WrittenLines([*WrittenLines.positions(mark.written), *found], mark.passed)
            session.unverified = set() if self.transactional else set(self.logs)
        return session

    def lines(self) -> dict[int, list[Position]]:
        """Give the positions in the topic, by the partition of the source, in order."""
        found: dict[int, list[Position]] = {}
        for log in self.logs.values():
            for entry in log:
                if entry is not None:
                    found.setdefault(entry.line.position.partition, []).append(entry.line.position)
        return found


class FakeSession:
    """Acknowledges at once, unless the topic is down or deaf; then when it is `heard`."""

    def __init__(self, topic: FakeTopic, writer: str) -> None:
        self.topic = topic
        self.stream = topic.stream
        self.writer = writer
        self.partitions = len(topic.logs)
        self.producer = Producer(1, 0)
        self.ends = {partition: len(log) for partition, log in topic.logs.items()}
        self.largest = topic.largest
        self.written = WrittenLines()
        self.existing: dict[tuple[str, int], int] = {}
        self.unverified: set[int] = set()
        self.transactional = topic.transactional
        self.transaction_seconds = 900.0
        self.over = False
        self.pending: list[tuple[Line, Receipt]] = []
        self.unheard: list[Receipt] = []
        self.open: list[tuple[int, Entry]] | None = None
        self.verified: list[Line] = []
        self.commits = 0
        self.calls: list[str] = []
        self.committing = threading.Event()
        self.committing.set()
        self.breaks: Exception | None = None
        self.spoilt: Exception | None = None

    @property
    def sequences(self) -> dict[int, int]:
        return dict.fromkeys(range(self.partitions), 0)

    def send(self, line: Line) -> Receipt:
        self.calls.append("send")
        if self.topic.largest is not None and len(line.value) > self.topic.largest:
            raise SinkError(f"the line of offset {line.position.offset} is too large")
        receipt = Receipt()
        refused = self.topic.refuses(line)
        if self.spoilt is not None or refused is not None:
            receipt.exception, receipt.is_done = refused or self.spoilt, True
            # Those behind it go with it, and none of this producer is taken any more.
            self.spoilt = self.spoilt or errors.KafkaError("it was part of a batch with invalid records")
            return receipt
        self.pending.append((line, receipt))
        if not self.topic.down:
            self.deliver()
        return receipt

    def deliver(self) -> None:
        """Append what is pending, and acknowledge it unless nobody hears."""
        for line, receipt in self.pending:
            if self.over:
                return
            partition = line.position.partition % self.partitions
            entry = Entry(self.writer, line)
            if self.open is not None:
                self.open.append((partition, entry))
                before = sum(other == partition for other, _ in self.open[:-1])
                offset = len(self.topic.logs[partition]) + before
            else:
                self.topic.logs[partition].append(entry)
                offset = len(self.topic.logs[partition]) - 1
            receipt.value = Metadata(offset)
            receipt.is_done = not self.topic.deaf
            if self.topic.deaf:
                self.unheard.append(receipt)
        self.pending.clear()

    def fail(self, error: Exception) -> None:
        """Let everything that is not acknowledged fail: the last line with an error, the others because of it."""
        receipts = [*self.unheard, *(receipt for _, receipt in self.pending)]
        for receipt in receipts:
            receipt.exception = error if receipt is receipts[-1] else RuntimeError("closed")
            receipt.is_done = True
        self.pending.clear()
        self.unheard.clear()

    def send_verified(self, line: Line) -> int:
        self.calls.append("send_verified")
        if self.breaks is not None:
            raise self.breaks
        refused = self.topic.refuses(line)
        if refused is not None:
            raise self.explain(refused, line)
        partition = line.position.partition % self.partitions
        self.topic.logs[partition].append(Entry(self.writer, line))
        self.verified.append(line)
        self.unverified.discard(partition)
        return len(self.topic.logs[partition]) - 1

    def explain(self, error: Exception, line: Line | None = None) -> Exception:
        if line is not None and line.taken is not None and (rest := line.taken.without_refused(error)) is not None:
            return Refused(str(error), line, rest)
        return error if isinstance(error, SinkError) else Broken(str(error))

    def follows(self, error: Exception) -> bool:
        return isinstance(error, RuntimeError) or type(error) is errors.KafkaError

    def wait(self, seconds: float) -> None:
        self.calls.append(f"wait {seconds:g}")

    def begin(self) -> None:
        self.calls.append("begin")
        assert self.open is None
        self.open = []

    def commit(self) -> None:
        self.calls.append("commit")
        self.committing.wait()
        ended = self.spoilt or self.topic.ends
        if ended is not None:
            raise self.explain(ended)
        if self.over:
            raise SinkError("another one is in")
        self._count()
        self.commits += 1

    def _count(self) -> None:
        assert self.open is not None
        for partition, entry in self.open:
            self.topic.logs[partition].append(entry)
        for partition in {partition for partition, _ in self.open}:
            self.topic.logs[partition].append(None)
        self.open = None

    def spoil(self, error: Exception, committed: bool) -> None:
        """Let the broker end the transaction by itself, and take nothing more of this producer."""
        if committed and self.open is not None:
            self._count()
        self.spoilt = error

    def verify(self) -> bool:
        if self.breaks is not None and not self.unverified:
            raise self.breaks
        return True

    def answered(self) -> bool:
        return not self.topic.down

    def failure(self) -> str:
        return "connection refused"

    def abandon(self) -> None:
        self.calls.append("abandon")
        self.over = True
        self.committing.set()


def at(offset: int, partition: int = 0) -> Position:
    return Position("source", partition, offset)


def made(topic: FakeTopic, **more: Any) -> KafkaSink:
    return KafkaSink("out", "broker:9092", connect=topic.connect, clock=topic.clock, **more)


def put(sink: KafkaSink, *positions: Position) -> None:
    sink.write([{"n": position.offset} for position in positions], positions)


def put_in_chunks(sink: KafkaSink, positions: list[Position], size: int) -> None:
    for place in range(0, len(positions), size):
        put(sink, *positions[place : place + size])


def until(holds: Callable[[], bool], sink: KafkaSink) -> None:
    """Let the sink's threads get on."""

    def written() -> bool:
        if holds():
            return True
        sink.write((), ())
        return False

    wait_until(written, pause=0.001)


def flushed(sink: KafkaSink) -> bool:
    """Flush, and tell whether that was answered."""
    try:
        sink.flush()
    except OutageError:
        return False
    return True


def settle(sink: KafkaSink) -> None:
    until(lambda: sink.waiting == 0, sink)
