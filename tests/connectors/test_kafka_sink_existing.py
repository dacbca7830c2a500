"""What the sink of Kafka does where the topic holds lines of runs that nothing is known of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pytest
from fake_output import FakeTopic, at, made, put, put_in_chunks, settle

from streamkernel.connectors import Position, SinkError

pytestmark = pytest.mark.usefixtures("short_naps")


class TestExisting:
    """Lines for the same records, and no mark that says how far they go: as where the checkpoints were lost."""

    @pytest.fixture
    def topic(self) -> FakeTopic:
        topic = FakeTopic(partitions=2)
        with made(topic) as sink:
            sink.open()
            put(sink, *map(at, range(7)), at(0, 1))
        return topic

    def test_are_not_doubled(self, topic: FakeTopic) -> None:
        sink = made(topic)
        sink.open()
        mark = sink.flush()
        sentence = (
            "7 of the last lines there are for records of the same source, partition 0, and no checkpoint says which: "
            ".*existing: append"
        )
        with pytest.raises(SinkError, match=sentence):
            put(sink, at(0))
        sink.close()
        # Nor by the restart, which has a mark.
        sink = made(topic)
        sink.open(json.loads(json.dumps(mark)))
        with pytest.raises(SinkError, match=sentence):
            put(sink, at(0))
        sink.close()
        assert topic.lines()[0] == [*map(at, range(7))]

    def test_are_where_that_is_wished_and_told(self, topic: FakeTopic, caplog: pytest.LogCaptureFixture) -> None:
        with made(topic, existing="append") as sink:
            sink.open()
            put(sink, *map(at, range(9)))
            assert sink.flush()["existing"] == [["source", 1, 1]]  # type: ignore[index]
        assert topic.lines()[0] == [*map(at, range(7)), *map(at, range(9))]
        [told] = [record for record in caplog.records if record.levelname == "WARNING"]
        assert "7 of the last lines there are for records of the same source, partition 0" in told.getMessage()

    def test_those_of_others_hold_up_nobody(self, topic: FakeTopic) -> None:
        others = [at(0, 2), Position("cluster/other/1", 0, 0), Position("labels:source", 0, 3)]
        with made(topic) as sink:
            sink.open()
            put(sink, *others)
            sink.flush()


def in_file(rows: Sequence[bytes], header: bytes = b"", whole: int = 4096) -> list[Position]:
    """The positions of the lines of a file, as a source of files names them."""
    head, places = header, []
    for row in rows:
        named = head[:whole]
        places.append(Position(f"{len(named)}:{hashlib.sha256(named).hexdigest()}", 0, len(head)))
        head += row
    return places


class TestExistingLinesForFiles:
    """A file is named by what was read of it: its first records have other names than the ones behind them."""

    mine, yours = ([b"%030d,%d\n" % (number, seed) for number in range(300)] for seed in (1, 2))

    @pytest.mark.parametrize("header", [b"", b"a,b\n"])
    @pytest.mark.parametrize("count", [1, 5, 300])
    @pytest.mark.parametrize("chunk", [1, 16])
    @pytest.mark.parametrize("alike", [0, 1])
    def test_those_for_another_file_hold_up_nobody(self, header: bytes, count: int, chunk: int, alike: int) -> None:
        topic = FakeTopic()
        yours = [*self.mine[:alike], *self.yours[alike:count]]
        with made(topic) as sink:
            sink.open()
            put(sink, *in_file(self.mine[:count], header))
        places = in_file(yours, header)
        with made(topic) as sink:
            sink.open()
            put_in_chunks(sink, places, chunk)
        assert topic.lines()[0][count:] == places

    @pytest.mark.parametrize("header", [b"", b"a,b\n"])
    @pytest.mark.parametrize("left", [0, 200])
    def test_those_for_the_same_file_are_not_doubled(self, header: bytes, left: int) -> None:
        topic = FakeTopic()
        places = in_file(self.mine, header)
        with made(topic) as sink:
            sink.open()
            put(sink, *places[left:])  # the earlier ones are not among the last that are looked at
        sink = made(topic)
        sink.open()
        with pytest.raises(SinkError, match="records of the same source"):
            put_in_chunks(sink, places, 16)
        sink.close()
        assert topic.lines()[0] == places[left:]

    def test_a_line_alone_is_not_held_back(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            put(sink, *in_file(self.mine))
        places = in_file(self.yours)
        with made(topic) as sink:
            sink.open()
            put(sink, places[0])
            settle(sink)
            put(sink, places[1])
            sink.flush()
            assert topic.lines()[0][-2:] == places[:2]

    def test_appending_is_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        topic = FakeTopic()
        places = in_file(self.mine)
        for _ in range(2):
            with made(topic, existing="append") as sink:
                sink.open()
                put(sink, *places)
        assert topic.lines()[0] == [*places, *places]
        assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1
