"""What a line takes over from the message of the source: in the sink, in the producer, and after a restart."""

from __future__ import annotations

from typing import Any

import pytest
from fake_output import FakeTopic, at
from kafka import errors

from streamkernel.connectors.kafka.consumer.topic import Bounds
from streamkernel.connectors.kafka.writing.mark import OutputMark, Producer
from streamkernel.connectors.kafka.writing.provenance import Provenance, origin
from streamkernel.connectors.kafka.writing.session import Broken, Line, ProducerSession, Refused
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.kafka.writing.taken_over import TakenOver, take_over
from streamkernel.connectors.kafka.writing.topic_scan import FoundLine
from streamkernel.connectors.kafka.writing.written_since import written_since
from streamkernel.connectors.pass_through import MessageLine, SourceMessage
from streamkernel.connectors.ports import Position, SinkError

pytestmark = pytest.mark.usefixtures("short_naps")

MESSAGE = SourceMessage(b"customer 7", (("trace", b"1"), *Provenance("other").headers(at(99))), 1500)


def lines(**how: Any) -> list[Line]:
    topic = FakeTopic()
    with KafkaSink("out", "b:1", connect=topic.connect, clock=topic.clock, **how) as sink:
        sink.open()
        sink.write([MessageLine({"n": 1}, MESSAGE), {"n": 2}], [at(1), at(2)])
        sink.flush()
        # What waits is counted with all that is sent.
        sink.write([MessageLine({"n": 3}, MESSAGE)], [at(3)])
    return [entry.line for entry in topic.logs[0] if entry]


class Producing:
    """As much of kafka-python's producer as a session asks of it to send a line."""

    def __init__(self) -> None:
        self.config = {"transactional_id": None, "transaction_timeout_ms": 1}
        self.sent: list[dict[str, Any]] = []
        self._transaction_manager = self

    last_error = None

    def send(self, topic: str, **message: Any) -> Any:  # noqa: ARG002
        self.sent.append(message)
        return self

    def add_errback(self, call: Any) -> Any:  # noqa: ARG002
        return self


class Scan:
    """A topic of one partition, with lines of a writer in it."""

    name = "out"
    stream = "c/out/1"
    partitions = 1
    largest = 1000

    def __init__(self, *found: FoundLine) -> None:
        self.found = list(found)

    def lines(self, *_: Any) -> list[FoundLine]:
        return self.found


def session() -> tuple[ProducerSession, Producing]:
    producer = Producing()
    return ProducerSession("out", producer, None, Scan(), "me"), producer  # type: ignore[arg-type]


class TestTaking:
    def test_key_headers_and_timestamp_on_request(self) -> None:
        first, second, third = lines(key="source", pass_through=["headers", "timestamp"])
        assert first.taken == TakenOver(True, b"customer 7", (("trace", b"1"),), 1500)
        assert first.taken == third.taken
        assert second.taken is None
        assert (first.beside, second.beside) == (len(b"customer 7") + len(b"trace1"), 0)

    def test_one_of_them_alone(self) -> None:
        assert lines(pass_through=["timestamp"])[0].taken == TakenOver(False, None, (), 1500)

    def test_a_message_without_key_or_timestamp_has_none(self) -> None:
        taken = take_over(SourceMessage(None, (), -1), "source", ["timestamp"])
        assert taken == TakenOver(True, None, (), None)


class TestSending:
    def test_a_line_is_known_by_its_own_headers_whatever_it_takes_over(self) -> None:
        one, producer = session()
        one.send(Line(b"{}", at(5), take_over(MESSAGE, "source", ["headers", "timestamp"])))
        (sent,) = producer.sent
        assert (sent["key"], sent["timestamp_ms"], sent["partition"]) == (b"customer 7", 1500, 0)
        assert sent["headers"][0] == ("trace", b"1")
        assert origin(sent["headers"], "me") == at(5)
        assert len(sent["headers"]) == 5

    def test_without_the_key_it_has_its_own(self) -> None:
        one, producer = session()
        one.send(Line(b"{}", at(5), take_over(MESSAGE, "position", ["headers"])))
        one.send(Line(b"{}", at(6)))
        assert [sent["key"] for sent in producer.sent] == [Provenance("me").key(at(5)), Provenance("me").key(at(6))]
        assert [sent["timestamp_ms"] for sent in producer.sent] == [None, None]

    def test_a_session_ends_by_what_the_topic_refuses_of_a_message_and_says_what_may_still_pass(self) -> None:
        one, _ = session()
        line = Line(b"{}", at(5), take_over(MESSAGE, "source", ["headers", "timestamp"]))
        assert line.taken is not None
        for error, rest in [
            (errors.InvalidTimestampError(), line.taken._replace(timestamp=None)),
            # How kafka-python tells it where several records of a batch have such a timestamp.
            (errors.InvalidRecordError("Timestamp 7 is out of range"), line.taken._replace(timestamp=None)),
            (errors.MessageSizeTooLargeError(), line.taken._replace(headers=())),
        ]:
            explained = one.explain(error, line)
            assert isinstance(explained, Refused)
            assert (explained.line, explained.rest) == (line, rest)

    def test_what_is_refused_of_a_line_of_ours_is_no_refusal(self) -> None:
        one, _ = session()
        line = Line(b"{}", at(5), take_over(MESSAGE, "position", ["headers"])._replace(headers=()))
        for error in (errors.InvalidTimestampError(), errors.InvalidRecordError()):
            # Another session may mend it.
            assert type(one.explain(error, line)) is type(one.explain(error, Line(b"{}", at(5)))) is Broken
        with pytest.raises(SinkError, match="at partition 0, offset 5 takes 2 bytes, more than the 1,000 of its"):
            raise one.explain(errors.MessageSizeTooLargeError(), line)

    def test_a_line_that_was_refused_with_another_one_of_its_batch_is_not_the_cause(self) -> None:
        one, _ = session()
        assert one.follows(errors.KafkaError("Failed to append record because it was part of a batch"))
        assert not one.follows(errors.InvalidRecordError())


class TestCompaction:
    """Of lines with one key a compacted topic keeps the last: the others were written all the same."""

    MARK = OutputMark("c/out/1", "me", {0: 10}, Producer(1, 0))
    FOUND = (FoundLine(0, at(7), True), FoundLine(0, at(4, 1), True), FoundLine(0, at(9), False))

    def written(self, keys_repeat: bool, in_order: bool = True) -> list[Position]:
        how = {"keys_repeat": keys_repeat, "in_order": in_order}
        found = written_since(Scan(*self.FOUND), self.MARK, {0: Bounds(0, 30)}, {}, **how)  # type: ignore[arg-type]
        places = [at(offset, partition) for partition in (0, 1) for offset in range(11)]
        return [place for place in places if found.take(place)]

    def test_lines_before_the_last_one_of_their_partition_count_as_written(self) -> None:
        assert self.written(True) == [*(at(offset) for offset in range(8)), *(at(offset, 1) for offset in range(5))]

    def test_where_no_two_lines_share_a_key_only_those_that_are_there_do(self) -> None:
        assert self.written(False) == [at(7), at(4, 1)]

    def test_in_a_replay_a_later_line_says_nothing_about_earlier_records(self) -> None:
        assert self.written(True, in_order=False) == [at(7), at(4, 1)]
