"""The sink of Kafka commits between two checkpoints, and nobody waits for it."""

from __future__ import annotations

import pytest
from fake_output import FakeTopic, at, made, put, until

from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.ports import OutageError

pytestmark = pytest.mark.usefixtures("short_naps")


@pytest.fixture
def topic() -> FakeTopic:
    return FakeTopic(transactional=True)


def publish(sink: KafkaSink) -> None:
    """Publish as the daemon does: again and again, until consumers may read all."""
    until(lambda: (sink.publish(), sink.unpublished == 0)[1], sink)


def test_lines_count_without_a_flush(topic: FakeTopic) -> None:
    sink = made(topic, transactional_id="me")
    sink.open()
    mark = sink.flush()
    put(sink, at(0), at(1))
    assert (sink.unpublished, topic.lines()) == (2, {})
    publish(sink)
    assert topic.lines() == {0: [at(0), at(1)]}
    sink.publish()  # nothing new: nothing to commit
    put(sink, at(2))
    publish(sink)
    assert topic.sessions[0].commits == 2
    put(sink, at(3))  # the process is killed before its next checkpoint
    with made(topic, transactional_id="me") as again:
        again.open(mark)
        put(again, *map(at, range(4)))
    assert topic.lines() == {0: [*map(at, range(4))]}


def test_lines_taken_while_one_is_committed_are_of_the_next(topic: FakeTopic) -> None:
    with made(topic, transactional_id="me") as sink:
        sink.open()
        put(sink, at(0))
        topic.sessions[0].committing.clear()
        sink.publish()
        put(sink, at(1), at(2))
        sink.publish()
        assert (sink.waiting, sink.unpublished) == (2, 3)
        with pytest.raises(OutageError, match="2 lines wait"):
            sink.flush()
        topic.sessions[0].committing.set()
        publish(sink)
        assert topic.lines() == {0: [at(0), at(1), at(2)]}
        assert topic.sessions[0].commits == 2


def test_it_waits_for_what_is_not_acknowledged_and_sends_no_more_meanwhile(topic: FakeTopic) -> None:
    with made(topic, transactional_id="me") as sink:
        sink.open()
        put(sink, at(0))
        topic.down = True
        put(sink, at(1))
        sink.publish()
        put(sink, at(2))
        calls = [call for call in topic.sessions[0].calls if not call.startswith("wait")]
        assert calls == ["begin", "send", "send"]
        topic.down = False
        topic.sessions[0].deliver()
        sink.publish()
        until(lambda: topic.sessions[0].commits == 1, sink)
        assert topic.lines() == {0: [at(0), at(1)]}
        publish(sink)
        assert topic.lines() == {0: [at(0), at(1), at(2)]}


def test_the_next_session_finds_what_became_of_it(topic: FakeTopic) -> None:
    with made(topic, transactional_id="me") as sink:
        sink.open()
        put(sink, at(0))
        publish(sink)
        put(sink, at(1))
        topic.sessions[0].spoil(ValueError("it is over"), committed=True)
        sink.publish()
        until(lambda: len(topic.sessions) == 2, sink)
        put(sink, at(2))
        publish(sink)
    assert topic.lines() == {0: [at(0), at(1), at(2)]}


def test_what_was_acknowledged_and_not_committed_is_written_again(topic: FakeTopic) -> None:
    with made(topic, transactional_id="me") as sink:
        sink.open()
        put(sink, at(0))
        publish(sink)
        put(sink, at(1))
        topic.sessions[0].spoil(ValueError("it is over"), committed=False)
        sink.publish()
        until(lambda: len(topic.sessions) == 2, sink)
        assert sink.unpublished == 1
        publish(sink)
    assert topic.lines() == {0: [at(0), at(1)]}


def test_without_transactions_lines_count_when_they_are_acknowledged() -> None:
    topic = FakeTopic()
    with made(topic) as sink:
        sink.open()
        topic.down = True
        put(sink, at(0), at(1))
        sink.publish()
        assert sink.unpublished == 2
        topic.down = False
        topic.sessions[0].deliver()
        until(lambda: sink.unpublished == 0, sink)
        assert topic.lines() == {0: [at(0), at(1)]}
