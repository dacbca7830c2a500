import pytest
from draining import drain

from streamkernel.connectors import MemorySink, MemorySource, Position, SinkError, SourceError

PAIRS = [({"a": 1.0}, "x"), ({"a": 2.0}, None), ({"a": 3.0}, "y")]


def test_resumes_at_any_record() -> None:
    source = MemorySource(PAIRS)
    records = drain(source)
    assert drain(source, {0: records[0].next}) == records[1:]
    assert drain(source, {0: records[2].next}) == []


@pytest.mark.parametrize("position", [Position("memory", 0, 4), Position("other", 0, 1)])
def test_a_foreign_position_is_refused(position: Position) -> None:
    with pytest.raises(SourceError, match="not one of these 3 records in memory"):
        MemorySource(PAIRS).open({0: position})


def test_the_sink_loses_what_was_not_flushed() -> None:
    sink = MemorySink()
    sink.open()
    sink.write([{"a": 1}])
    assert sink.flush() == 1
    sink.write([{"a": 2}])
    sink.open(mark=1)
    assert sink.lines == [{"a": 1}]
    sink.write([{"a": 3}])
    sink.close()
    assert sink.lines == [{"a": 1}, {"a": 3}]
    assert sink.exactly_once


def test_a_shorter_sink_is_refused() -> None:
    with pytest.raises(SinkError, match="0 lines, fewer than the 2 recorded"):
        MemorySink().open(mark=2)
