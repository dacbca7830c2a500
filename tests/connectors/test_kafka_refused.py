"""A topic that refuses what lines take over: each goes out without it, once and in order, which is counted and told."""

from __future__ import annotations

import time

import pytest
from fake_output import FakeTopic, at, made
from kafka import errors

from streamkernel.connectors.kafka.writing.backlog import Backlog
from streamkernel.connectors.kafka.writing.refusals import Refusals
from streamkernel.connectors.kafka.writing.session import Line, Refused
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.kafka.writing.taken_over import TakenOver
from streamkernel.connectors.pass_through import MessageLine, SourceMessage

pytestmark = pytest.mark.usefixtures("short_naps")

NOW = int(time.time())
HOUR = 3_600_000
COMPACTED = errors.InvalidRecordError("Compacted topic cannot accept message without key in topic partition out-0.")


@pytest.fixture(params=[False, True], ids=["at once", "transactions"])
def topic(request: pytest.FixtureRequest) -> FakeTopic:
    return FakeTopic(transactional=request.param)


def written(topic: FakeTopic, *messages: SourceMessage) -> list[Line]:
    """Write a line for each message, the first ones in a transaction of their own; return those in the topic."""
    how = {"key": "source", "pass_through": ["headers", "timestamp"]}
    with made(topic, transactional_id="me" if topic.transactional else None, **how) as sink:
        sink.open()
        write(sink, messages[:2], 0)
        sink.flush()
        for place in range(2, len(messages), 2):
            write(sink, messages[place : place + 2], place)
        sink.flush()
    lines = [entry.line for entry in topic.logs[0] if entry]
    assert [line.position for line in lines] == [*map(at, range(len(messages)))]
    return lines


def write(sink: KafkaSink, messages: tuple[SourceMessage, ...], first: int) -> None:
    places = range(first, first + len(messages))
    lines = [MessageLine({"n": n}, message) for n, message in zip(places, messages, strict=True)]
    sink.write(lines, [*map(at, places)])


def too_far_ahead(line: Line) -> Exception | None:
    ahead = line.taken is not None and line.taken.timestamp is not None and line.taken.timestamp > 1000 * NOW + HOUR
    return errors.InvalidTimestampError("Timestamp is out of range") if ahead else None


def without_key(line: Line) -> Exception | None:
    return COMPACTED if line.taken is not None and line.taken.keyed and line.taken.key is None else None


def test_a_timestamp_out_of_bounds(topic: FakeTopic, caplog: pytest.LogCaptureFixture) -> None:
    topic.refuses = too_far_ahead
    times = [1, 2, 5, 400_000_000, 7, 500_000_000, 3_000_000, 8]
    messages = [SourceMessage(b"k", (("h", b"v"),), 1000 * NOW + 1000 * seconds) for seconds in times]
    taken = [line.taken for line in written(topic, *messages)]
    left = [one.timestamp for one in taken if one is not None]
    assert left == [None if time > 3600 else 1000 * NOW + 1000 * time for time in times]
    assert {one and (one.keyed, one.key, one.headers) for one in taken} == {(True, b"k", (("h", b"v"),))}
    told = [record.message for record in caplog.records if "timestamp" in record.message]
    assert told[0] == (
        "kafka topic out at broker:9092: the topic does not accept the timestamp of source messages (the last at "
        "partition 0, offset 3): 1 lines were written without it so far"
    )
    assert len(told) == 1  # the rest is told a minute later


def test_a_message_without_a_key_where_the_topic_is_compacted(topic: FakeTopic) -> None:
    topic.refuses = without_key
    messages = [SourceMessage(None if n % 2 else b"k", (), n) for n in range(10)]
    taken = [line.taken for line in written(topic, *messages)]
    assert [one and (one.keyed, one.timestamp) for one in taken] == [(n % 2 == 0, n) for n in range(10)]
    # Once it is known, no more sessions end by it.
    assert len(topic.sessions) <= 2


def test_headers_and_keys_that_are_too_long(topic: FakeTopic) -> None:
    topic.largest = 2000
    messages = [
        SourceMessage(b"k", (("h", b"v"),), 1),
        SourceMessage(b"k", (("h", 1500 * b"v"),), 2),
        SourceMessage(1500 * b"k", (("h", b"v"),), 3),
    ]
    taken = [line.taken for line in written(topic, *messages)]
    assert taken == [
        TakenOver(True, b"k", (("h", b"v"),), 1),
        TakenOver(True, b"k", (), 2),
        TakenOver(False, None, (), 3),
    ]
    assert len(topic.sessions) == 1


def test_a_limit_that_is_not_known(topic: FakeTopic) -> None:
    topic.largest = None

    def refuses(line: Line) -> Exception | None:
        return errors.MessageSizeTooLargeError() if line.taken and line.taken.size > 100 else None

    topic.refuses = refuses
    messages = [SourceMessage(b"k", (("h", n * b"v"),), 1) for n in (1, 200, 2)]
    taken = [line.taken for line in written(topic, *messages)]
    assert [one and len(one.headers) for one in taken] == [1, 0, 1]


def test_timestamps_beyond_one_that_was_refused_are_not_tried() -> None:
    now = [float(NOW)]
    refusals, backlog = Refusals("topic out", lambda: now[0]), Backlog()

    def dated(seconds: int) -> Line:
        return Line(b"{}", at(0), TakenOver(False, None, (), 1000 * (NOW + seconds)))

    def passes(seconds: int) -> bool:
        taken = refusals.fitted(dated(seconds), None).taken
        return taken is not None and taken.timestamp is not None

    assert all(map(passes, (7200, 9000, -9000)))
    line = dated(7200)
    backlog.put([line])
    refusals.meet(Refused("out of range", line, TakenOver(False, None, (), None)), backlog, lambda error, _: error)
    assert backlog.queue[0].taken == TakenOver(False, None, (), None)
    assert [*map(passes, (7200, 9000, 3600, -9000))] == [False, False, True, True]
    now[0] += 3600  # it is not so far ahead any more
    assert passes(7200)
