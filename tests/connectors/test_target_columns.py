"""Records with several targets, in CSV and JSON: read one by one as many at once, shown, refused and written."""

import pytest

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files.csv import CsvSource
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.files.sinks import CsvSink
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import Position, SourceError

CSV = [b"1,2,3,u", b"2,,4,v", b"3,,nan,v", b"4,x,1,u", b"short", b"x,a,b,w", b"", b"5,6,7,u"]
JSON = [
    b'{"x":1,"a":2,"t":{"b":3}}',
    b'{"x":1,"a":null,"t":{"b":3}}',
    b'{"x":1,"a":true,"t":{"b":3}}',
    b'{"x":2}',
    b"[1]",
    b"",
    b'{"x":1,"a":36893488147419103233,"t":{"b":"4"}}',
]


def _decoders():
    rules = ColumnRules(InputSettings(nested="flatten", exclude=("w",)), 256)
    yield CsvRows(["x", "a", "b", "w"], ["a", "b"], "float", ",", "utf-8", 256), CSV
    yield CsvRows(["x", "a", "b", "w"], ["a", "b"], "float", ",", "utf-8", 256, rules), CSV
    yield JsonObjects(["a", "t.b"], "float", 256, rules), JSON


@pytest.mark.parametrize(("decoder", "raws"), list(_decoders()))
def test_many_records_are_read_as_one_by_one(decoder, raws):
    places = [Position("memory", 0, n) for n in range(len(raws) + 1)]
    one_by_one = [decoder.record(*each) for each in zip(raws, places, places[1:], strict=False)]
    assert decoder.records(raws, places[:-1], places[1:]) == one_by_one
    good = [raw for raw, record in zip(raws, one_by_one, strict=True) if record.fault is None]
    assert [record.y for record in decoder.records(good, places[: len(good)], places[1 : len(good) + 1])] == [
        record.y for record in one_by_one if record.fault is None
    ]


def test_targets_are_no_inputs_and_one_that_is_none_is_named():
    places = [Position("memory", 0, n) for n in range(9)]
    decoder = CsvRows(["x", "a", "b", "w"], ["a", "b"], "float", ",", "utf-8", 256)
    records = decoder.records(CSV, places[:-1], places[1:])
    assert [(record.x, record.y) for record in records[:3]] == [
        ({"x": 1.0, "w": "u"}, {"a": 2.0, "b": 3.0}),
        ({"x": 2.0, "w": "v"}, {"a": None, "b": 4.0}),
        ({"x": 3.0, "w": "v"}, None),
    ]
    assert records[3].fault == ("target", "column 'a': the target 'x' is not a finite float")
    assert [(use.name, use.use) for use in decoder.columns(CSV[1])] == [
        ("a", "target, missing"),
        ("b", "target 4.0"),
        ("x", "input x=2"),
        ("w", "input"),
    ]
    nested = JsonObjects(["a", "t.b"], "float", 256, ColumnRules(InputSettings(nested="flatten"), 256))
    assert nested.record(JSON[0], places[0], places[1])[:2] == ({"x": 1}, {"a": 2.0, "t.b": 3.0})


def test_a_file_without_one_of_the_targets_is_refused_unless_they_are_not_required(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,a\n1,2\n")
    with (
        CsvSource(path, target=["a", "b"], target_type="float") as source,
        pytest.raises(SourceError, match="there is no column 'b' for the target, the header has 'x', 'a'"),
    ):
        source.open()
    with CsvSource(path, target=["a", "b"], target_type="float", target_required=False) as source:
        source.open()
        assert source.poll(9, 0)[0].y == {"a": 2.0, "b": None}


def test_a_table_of_other_targets_is_not_gone_on_with(tmp_path):
    path = tmp_path / "p.csv"
    line = {"prediction": {"a": 1.5}, "target": {"a": 1.0, "b": None}}
    with CsvSink(path, targets=["a", "b"]) as sink:
        sink.open()
        sink.write([line, {"prediction": None, "target": None}])
        mark = sink.flush()
    assert path.read_text() == "prediction_a,prediction_b,target_a,target_b\n1.5,,1.0,\n,,,\n"
    with CsvSink(path, targets=["a", "c"], included=[]) as sink, pytest.raises(Exception, match="prediction_c"):
        sink.open(mark)
