"""The sink of Kafka with transactions, and a property of it with and without them."""

from __future__ import annotations

from typing import Any

import pytest
from fake_output import FakeTopic, at, flushed, made, put, settle, until
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors import SinkError
from streamkernel.connectors.kafka.writing import delivery
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.ports import OutageError

pytestmark = pytest.mark.usefixtures("short_naps")


class TestTransactions:
    @pytest.fixture
    def topic(self) -> FakeTopic:
        return FakeTopic(transactional=True)

    def test_one_a_checkpoint(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            sink.flush()
            put(sink, at(0), at(1))
            put(sink, at(2))
            assert topic.lines() == {}
            sink.flush()
            assert topic.lines() == {0: [at(0), at(1), at(2)]}
            sink.flush()  # nothing new: nothing to commit
            put(sink, at(3))
            assert sink.flush()["ends"] == {"0": 5}  # type: ignore[index] # the fourth offset is the mark of a transaction
        assert topic.sessions[0].commits == 2
        calls = [call for call in topic.sessions[0].calls if not call.startswith("wait")]
        assert calls == ["begin", "send", "send", "send", "commit", "begin", "send", "commit", "abandon"]

    def test_closing_commits(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
        assert topic.lines() == {0: [at(0)]}

    def test_a_commit_that_hangs_holds_nothing_up(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            topic.sessions[0].committing.clear()
            with pytest.raises(OutageError, match="the end of a transaction waits"):
                sink.flush()
            put(sink, at(1), at(2))  # they wait for the next one
            with pytest.raises(OutageError, match="2 lines wait"):
                sink.flush()
            assert topic.sessions[0].calls.count("commit") == 1
            topic.sessions[0].committing.set()
            until(lambda: sink.waiting == 0, sink)
            sink.flush()
            assert topic.lines() == {0: [at(0), at(1), at(2)]}
            assert topic.sessions[0].commits == 2

    def test_one_that_never_ends_ends_the_sink(self, topic: FakeTopic) -> None:
        sink = made(topic, transactional_id="me")
        sink.open()
        put(sink, at(0))
        topic.sessions[0].committing.clear()
        for _ in range(12):
            with pytest.raises(OutageError):
                sink.flush()
            topic.clock.now += 90
        sentence = r"^kafka topic out at broker:9092: nothing was acknowledged for \d+ s, though the broker answers: .*"
        with pytest.raises(SinkError, match=f"{sentence}Start again") as caught:
            put(sink, at(1))
        assert not isinstance(caught.value, OutageError)
        sink.close()  # says nothing more
        assert topic.sessions[0].over

    def test_one_that_waits_for_a_broker_may_take_for_ever(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            topic.sessions[0].committing.clear()
            for answers in [*5 * [True], *20 * [False], *5 * [True]]:
                topic.down = not answers
                with pytest.raises(OutageError):
                    sink.flush()
                topic.clock.now += 100
            topic.sessions[0].committing.set()
            until(lambda: flushed(sink), sink)
            assert topic.lines() == {0: [at(0)]}

    def test_the_crash_between_commit_and_checkpoint(self, topic: FakeTopic) -> None:
        sink = made(topic, transactional_id="me")
        sink.open()
        mark = sink.flush()
        put(sink, at(0), at(1))
        sink.flush()
        put(sink, at(2))  # never committed
        again = made(topic, transactional_id="me")
        again.open(mark)
        put(again, at(0), at(1), at(2))
        again.flush()
        assert topic.lines() == {0: [at(0), at(1), at(2)]}

    @pytest.mark.parametrize("committed", [True, False])
    def test_one_the_broker_forgot_before_it_took_a_line_is_begun_anew(self, topic: FakeTopic, committed: bool) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            sink.flush()
            topic.sessions[0].spoil(ValueError("not known any more"), committed)
            put(sink, at(1), at(2))
            sink.flush()
            assert topic.before == topic.sessions[0].producer
        assert topic.lines() == {0: [at(0), at(1), at(2)]}

    @pytest.mark.parametrize("when", ["lines", "the end"])
    def test_one_that_was_committed_too_early_is_gone_on_from(self, topic: FakeTopic, when: str) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            sink.flush()
            put(sink, at(1), at(2))
            put(sink, at(3))
            topic.sessions[0].spoil(ValueError("it is over"), committed=True)
            if when == "lines":
                put(sink, at(4))
            mark = sink.flush()
            assert isinstance(mark, dict)
            assert mark["written"] == []
            put(sink, at(5))
        last = 4 if when == "lines" else 3
        assert topic.lines() == {0: [*map(at, range(last + 1)), at(5)]}

    def test_one_whose_lines_are_gone_is_written_again(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            sink.flush()
            put(sink, at(1), at(2))
            put(sink, at(3))
            topic.sessions[0].spoil(ValueError("it is over"), committed=False)
            put(sink, at(4))
            sink.flush()
        assert topic.lines() == {0: [*map(at, range(5))]}

    def test_one_that_never_commits_ends_the_sink(self, topic: FakeTopic) -> None:
        """Its lines are acknowledged again and again, and gone each time."""
        sink = made(topic, transactional_id="me")
        sink.open()
        put(sink, at(0))
        topic.ends = ValueError("it is over")
        with pytest.raises(SinkError, match=r"again and again \(it is over\)"):
            sink.flush()
        sink.close()

    def test_a_large_one_is_committed_early(self, topic: FakeTopic, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(delivery, "_MOST_OPEN_BYTES", 1000)
        with made(topic, transactional_id="me") as sink:
            sink.open()
            for offset in range(10):
                put(sink, at(offset))
            settle(sink)
            assert topic.sessions[0].commits >= 2
        assert topic.lines() == {0: [*map(at, range(10))]}


@given(data=st.data(), transactional=st.booleans(), partitions=st.integers(1, 3))
def test_whatever_happens_each_line_stands_there_once_and_in_order(
    data: st.DataObject, transactional: bool, partitions: int
) -> None:
    topic = FakeTopic(partitions, transactional)
    sources = 2
    name = "me" if transactional else None

    def opened(mark: Any) -> KafkaSink:
        topic.down = topic.deaf = False
        sink = made(topic, transactional_id=name)
        sink.open(mark)
        return sink

    sink = opened(None)
    saved: tuple[Any, list[int]] = (sink.flush(), [0] * sources)
    reached, furthest = [0] * sources, [0] * sources
    kinds = ["write", "write", "write", "save", "flush", "publish", "crash", "down", "up", "deaf", "break"]
    for step in data.draw(st.lists(st.sampled_from(kinds), max_size=25)):
        session = topic.sessions[-1]
        if step == "write":
            which = data.draw(st.integers(0, sources - 1))
            count = data.draw(st.integers(1, 5))
            put(sink, *(at(reached[which] + number, which) for number in range(count)))
            reached[which] += count
            furthest[which] = max(furthest[which], reached[which])
        elif step in ("save", "flush") and not topic.down:
            topic.deaf = False
            session.deliver()
            try:
                mark = sink.flush()
            except OutageError:
                continue  # what nobody hears of stays unheard, until a minute is over
            if step == "save":
                saved = mark, list(reached)
        elif step == "publish":
            sink.publish()
            sink._delivery._connector.wait(30)  # it is over, which the sink need not know yet
        elif step == "crash":
            session.over = True
            sink = opened(saved[0])
            reached = list(saved[1])
        elif step == "down":
            topic.down = True
        elif step == "up":
            topic.down = False
            session.deliver()
        elif step == "deaf" and not transactional:
            topic.deaf = True
        elif step == "break" and not transactional and session.pending:
            session.fail(ValueError("no reason"))
        elif step == "break" and transactional and not topic.down:
            session.spoil(ValueError("no reason"), committed=data.draw(st.booleans()))
            put(sink, at(reached[0]))
            settle(sink)
            reached[0] += 1
            furthest[0] = max(furthest[0], reached[0])
    topic.down = topic.deaf = False
    topic.sessions[-1].deliver()
    for which in range(sources):
        put(sink, *(at(offset, which) for offset in range(reached[which], furthest[which] + 1)))
    topic.clock.now += 100
    until(lambda: sink.waiting == 0, sink)
    sink.flush()
    sink.close()
    wanted = {which: [at(offset, which) for offset in range(furthest[which] + 1)] for which in range(sources)}
    assert topic.lines() == wanted
