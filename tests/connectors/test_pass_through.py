"""What passes from a record of a source to its line: columns as the source has them, and messages of Kafka."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest
from fake_kafka import message
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors import CsvSource, JsonLinesSource, Position, SourceError
from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.kafka.base.messages import Messages
from streamkernel.connectors.kafka.reading.buffers import PartitionBatch
from streamkernel.connectors.kafka.reading.message_decoder import MessageDecoder
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.pass_through import Passed, PassedColumn, SourceMessage
from streamkernel.connectors.pass_through_reader import PassThrough
from streamkernel.connectors.ports import Record, Source


def columns(*names: str) -> list[PassedColumn]:
    return [PassedColumn(name, name) for name in names]


def passed(source: Source, *asked: PassedColumn) -> list[dict[str, Any] | None]:
    source.pass_through(asked)
    with source:
        source.open()
        return [None if one.passed is None else one.passed.columns for one in source.poll(100, timeout=0)]


def one(kind: Any, value: Any) -> Any:
    return PassThrough([PassedColumn("a", "b", kind)])({"a": value}).columns["b"]


class TestFiles:
    """The values as they stand in the file, whatever the model is given."""

    def test_csv_passes_texts(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(b'zip,a,y\n00123,1,yes\n"a, ""b""",,no\n,2,\n1,2\n\n')
        found = passed(CsvSource(path, target="y"), *columns("zip", "y"))
        # The fourth has too few fields, the fifth is blank.
        assert found == [
            {"zip": "00123", "y": "yes"},
            {"zip": 'a, "b"', "y": "no"},
            {"zip": None, "y": None},
            None,
            None,
        ]

    def test_a_column_that_the_header_lacks_is_told_with_those_it_has(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(b"zip,a\n1,2\n")
        with pytest.raises(SourceError, match=r"'zap' .*'zip', 'a'"):
            passed(CsvSource(path), *columns("a", "zap"))

    def test_json_passes_any_value_exactly(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_bytes(b'{"id": 1180591620717411303424, "a": 1}\n{"id": "b", "user.name": "y"}\n')
        found = passed(JsonLinesSource(path), *columns("id", "user.name"))
        assert found == [{"id": 2**70, "user.name": None}, {"id": "b", "user.name": "y"}]

    def test_a_nested_value_passes_by_the_names_on_the_way_to_it(self) -> None:
        read = PassThrough(columns("user.name", "user", "user.name.first"))
        assert read({"user": {"name": "x"}}).columns == {
            "user.name": "x",
            "user": {"name": "x"},
            "user.name.first": None,
        }

    def test_each_digit_of_a_nested_integer_passes(self, tmp_path: Path) -> None:
        ids = [123456789012345678901234567890 + n for n in range(50)]
        lines = [json.dumps({"user": {"id": one, "all": [one]}, "a": 1.5}) for one in ids]
        path = tmp_path / "x.jsonl"
        path.write_text("\n".join(lines) + "\n")
        source = JsonLinesSource(path, inputs=InputSettings(nested="ignore"))
        found = passed(source, PassedColumn("user.id", "id"), PassedColumn("user.all.0", "first"))
        assert found == [{"id": one, "first": one} for one in ids]


class TestWhateverStandsThere:
    """What can be decoded can be read once more, however odd it is."""

    @given(st.lists(st.text('a1,"\r\n _é\x00', max_size=8), max_size=6))
    def test_in_csv(self, lines: list[str]) -> None:
        decoder = CsvRows(["a", "b"], "b", "str", ",", "utf-8", 256)
        decoder.passing = PassThrough(columns("a", "b"))
        self.check(decoder, [line.encode() for line in lines])

    @given(
        st.lists(
            st.sampled_from(["{", "}", '"a"', ":", ",", "NaN", "1e999", str(2**70), '"\\ud800"', "[", "]", " ", "1"])
            | st.just('{"a": 1, "b": 123456789012345678901234567890}'),
            max_size=9,
        )
    )
    def test_in_json(self, pieces: list[str]) -> None:
        decoder = JsonObjects("b", "str", 256)
        decoder.passing = PassThrough(columns("a", "b"))
        self.check(decoder, ["".join(pieces).encode(), *(piece.encode() for piece in pieces)])

    def test_nested_too_deeply(self) -> None:
        raw = b'{"b": 123456789012345678901234567890, "a": ' + 990 * b"[" + 990 * b"]" + b"}"
        assert JsonObjects(None, "str", 256).values(raw)["b"] == pytest.approx(1.2e29, rel=0.1)

    def check(self, decoder: BulkDecoder, raws: list[bytes]) -> None:
        places = [Position("s", 0, number) for number in range(len(raws) + 1)]
        for record in decoder.records(raws, places[:-1], places[1:]):
            assert (record.passed is None) == (record.fault is not None or record.blank)


class TestMessages:
    """Key, headers and timestamp of a message, beside the fields of its value."""

    def records(self, *messages: Any, asked: list[PassedColumn], whole: bool = False) -> list[Record]:
        decoder = MessageDecoder(JsonObjects("y", "str", 256), 1000)
        decoder.passing = PassThrough(asked, whole)
        return decoder.records("s", PartitionBatch.of(0, Messages.of(messages)))

    def test_they_are_columns(self) -> None:
        headers = [("trace", b"1"), ("trace", b"2"), ("odd", b"\xff"), ("none", None)]
        sent = message(0, b'{"a": 1}', key=b"k", headers=headers, timestamp=1500)
        asked = columns("kafka.key", "kafka.headers", "kafka.header.trace", "kafka.header.none", "a")
        (record,) = self.records(sent, asked=[*asked, PassedColumn("kafka.timestamp", "at", "timestamp")])
        assert record.passed == Passed(
            {
                "kafka.key": "k",
                "kafka.headers": {"trace": "2", "odd": "/w==", "none": None},
                "kafka.header.trace": "2",
                "kafka.header.none": None,
                "a": 1,
                "at": "1970-01-01T00:00:01.500000Z",
            }
        )

    def test_a_field_of_the_value_with_such_a_name_wins(self) -> None:
        (record,) = self.records(message(0, b'{"kafka.key": 5}', key=b"k"), asked=columns("kafka.key"))
        assert record.passed == Passed({"kafka.key": 5})

    def test_the_message_passes_where_it_is_asked_for(self) -> None:
        sent = message(0, b"{}", key=None, headers=[("h", b"1")], timestamp=7)
        (record,) = self.records(sent, asked=[], whole=True)
        assert record.passed == Passed({}, SourceMessage(None, (("h", b"1"),), 7))

    def test_what_cannot_be_used_passes_nothing(self) -> None:
        good, tombstone, bad = (message(offset, value) for offset, value in enumerate([b"{}", None, b"["]))
        found = self.records(good, tombstone, bad, asked=columns("kafka.key"))
        assert [one.passed is None for one in found] == [False, True, True]


class TestTypes:
    """A value that is of its type, and one that is not."""

    def test_a_value(self, subtests: pytest.Subtests) -> None:
        for kind, value, read in [
            (None, " x ", " x "),
            (None, [1, {"a": 2}], [1, {"a": 2}]),
            (None, "", None),
            ("str", 5, "5"),
            ("str", True, "true"),
            ("str", 1.0, "1.0"),
            ("str", math.nan, None),
            ("str", {"a": 1}, '{"a":1}'),
            ("str", 5000 * "x", 5000 * "x"),
            ("int", "007", 7),
            ("int", "7.0", 7),
            ("int", "7.5", None),
            ("int", 2**63, None),
            ("int", "nan", None),
            ("float", "1e3", 1000.0),
            ("float", "inf", None),
            ("float", "1_000", None),
            ("bool", "No", False),
            ("bool", 2, None),
            ("bool", [1], None),
            ("timestamp", "2026-11-22", "2026-11-22T00:00:00Z"),
            ("timestamp", "20261122", "2026-11-22T00:00:00Z"),
            ("timestamp", "2026-11-22T10:00:00.5+01:00", "2026-11-22T09:00:00.500000Z"),
            ("timestamp", 1763802000, "2025-11-22T09:00:00Z"),
            ("timestamp", "1763802000123", "2025-11-22T09:00:00.123000Z"),
            ("timestamp", 1e300, None),
            ("timestamp", True, None),
            ("timestamp", "tomorrow", None),
        ]:
            with subtests.test(kind=kind, value=value, read=read):
                assert one(kind, value) == read

    def test_what_does_not_fit_is_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        read = PassThrough([PassedColumn("a", "a", "int")])
        assert [read({"a": value}).columns for value in ("x", "y", "1")] == [{"a": None}, {"a": None}, {"a": 1}]
        assert [record.getMessage() for record in caplog.records] == [
            "column 'a' passes through as int, and 'x' is not one: such values are null in the lines"
        ]

    def test_a_name_that_no_record_has_is_told(self, caplog: pytest.LogCaptureFixture) -> None:
        read = PassThrough(columns("a", "idd"))
        with caplog.at_level(logging.WARNING):
            for _ in range(300):
                read({"a": 1})
        assert [record.getMessage() for record in caplog.records] == [
            "none of the first 100 records has 'idd', a column to pass through: it is null in the lines"
        ]
