"""CSV as a source: fields, quotes over several lines, headers, and limits."""

from __future__ import annotations

import logging
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from draining import consistent, drain, held_after, written

from streamkernel.connectors import CsvSource, Record, SourceError
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files import csv as csv_module
from streamkernel.connectors.files import lines as joining
from streamkernel.connectors.files.header import delimiter_hint
from streamkernel.connectors.pass_through import PassedColumn

pytestmark = pytest.mark.usefixtures("no_pause")


def read(tmp_path: Path, data: bytes, name: str = "data.csv", at_once: int = 1000, **options: Any) -> list[Record]:
    return drain(CsvSource(written(tmp_path / name, data), **options), at_once=at_once)


def reasons(records: list[Record]) -> list[str | None]:
    return [record.fault and record.fault.reason for record in records]


def test_fields(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for field, value in [
        ("1", 1.0),
        ("+1.", 1.0),
        ("1e-3", 0.001),
        ("1_000", "1_000"),
        ("red", "red"),
        (" red", " red"),
        ("a\rb", "a\rb"),
        ("", None),
        ("NaN", None),
        ("-nan", None),
        ('""', None),
        ('"a,b"', "a,b"),
        ('"say ""hi"""', 'say "hi"'),
        ('5" pipe', '5" pipe'),
    ]:
        for beside in ["7", "word", "1_0"]:
            with subtests.test(field=field, value=value, beside=beside):
                # Beside a number the quick way is taken, beside a word the other one.
                (record,) = read(tmp_path, f"a,b\n{field},{beside}\n".encode())
                assert record.fault is None
                expected = {} if value is None else {"a": value}
                assert record.x == {**expected, "b": 7.0 if beside == "7" else beside}


def test_other_encodings(tmp_path: Path) -> None:
    (record,) = read(tmp_path, b"\xe9,b\n\xe8,2\n", encoding="latin-1")
    assert record.x == {"é": "è", "b": 2.0}
    (record,) = read(tmp_path, "a,b\nソ,2\n".encode("shift_jis"), encoding="Shift-JIS")
    assert record.x == {"a": "ソ", "b": 2.0}


@pytest.mark.parametrize("at_once", [1, 100])
def test_a_byte_order_mark_is_skipped_where_files_were_put_together(tmp_path: Path, at_once: int) -> None:
    part = b"\xef\xbb\xbfa,y\n1,t\n"
    data = part + b'\xef\xbb\xbf"2\n3",t\n' + part + b"\xef\xbb\xbf\n\xef\xbb\xbf3,f\n"
    records = read(tmp_path, data, target="y", multiline=True, at_once=at_once)
    assert [(record.x, record.y) for record in records if not record.blank] == [
        *([({"a": 1.0}, "t"), ({"a": "2\n3"}, "t"), ({"a": 1.0}, "t"), ({"a": 3.0}, "f")])
    ]
    consistent(records, data, start=7)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "rot13", "no-such-code", "idna"])
def test_an_encoding_without_single_byte_ascii_is_refused(encoding: str) -> None:
    with pytest.raises(ValueError, match="encoding"):
        CsvSource("data.csv", encoding=encoding)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"a,b,a,c,b", r"data.csv: column names must differ, the header repeats 'a', 'b': rename them in the file, or"),
        (b"y,a,y", r"the header repeats 'y'"),
        (b"a,,b,,y", r"the header repeats ''"),
        (b",,", r"no column has a name"),
        (b"a,b", r"data.csv: there is no column 'y' for the target, the header has 'a', 'b'$"),
        (b" y,b", r"no column 'y' for the target, the header has ' y', 'b', did you mean ' y'\?$"),
        (b"a;y", r'data.csv: the header has one column that contains ";": set delimiter: ";" next to path, or --delim'),
        (b'"a"\t"y"', r'contains "\\t": set delimiter: "\\t"'),
        (b"", r"the first line is empty"),
        (b'a,"y', r"the header cannot be read: the quotes are not valid CSV"),
        (b'a\rb,"y"\n1', r"the quotes are not valid CSV: a carriage return outside of quotes"),
        (b"\xff,y", r"the header is not utf-8: set the encoding"),
        (b"y," + b"a" * 100, r"the header is longer than max_record_bytes \(90\)"),
        (
            b"y," + b"a" * 41,
            r"'a{20}'... of 41 characters is longer than max_string \(40\): shorten it, or raise limits.max_string",
        ),
        (",".join(f"column-{i}" for i in range(30)).encode(), "max_record_bytes"),
    ],
)
def test_a_header_that_cannot_be_used_is_an_error_at_open(tmp_path: Path, header: bytes, message: str) -> None:
    source = CsvSource(
        written(tmp_path / "data.csv", header + b"\n1,2\n"), target="y", max_record_bytes=90, max_string=40
    )
    with pytest.raises(SourceError, match=message):
        source.open()


def test_what_another_delimiter_would_not_mend_is_not_laid_to_it() -> None:
    for header in (b'"price; net"', "a\ty".encode("utf-16"), "größe;y".encode("cp1252"), b"a;b\ry;z\r1;2"):
        assert delimiter_hint(header, ",", "utf-8") == ""


def test_one_column_with_another_delimiter_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without a target nothing is wrong: it may be one column of that name, as one in quotes surely is."""
    for header, n_told in ((b"a;b", 1), (b'"a;b"', 0), (b"a,b;c", 0), (b"a", 0)):
        caplog.clear()
        drain(CsvSource(written(tmp_path / "data.csv", header + b"\n")))
        assert [message.count("the header has one column that contains") for message in caplog.messages] == [1] * n_told


def test_columns_that_nobody_needs_may_be_double_or_nameless(tmp_path: Path) -> None:
    data = b"a;c;b;c;y;;\n" + b"".join(b"%d;x;2;9;t;;7\n" % number for number in range(3)) + b"4;5;6;7;t\n"
    for inputs in (InputSettings(include=("a", "b")), InputSettings(exclude=("c",))):
        records = read(tmp_path, data, target="y", delimiter=";", inputs=inputs)
        assert [(record.x, record.y) for record in records[:3]] == [({"a": a, "b": 2.0}, "t") for a in range(3)]
        assert reasons(records) == [None, None, None, "csv_width"]
    source = CsvSource(written(tmp_path / "data.csv", b"a,y,\n1,t,x\n"), target="y")
    with source:
        source.open()
        (record,) = source.poll(10, timeout=0)
        assert (record.x, record.y) == ({"a": 1.0}, "t")
        assert [use.name for use in source.columns(record)] == ["y", "a"]
    passed = CsvSource(written(tmp_path / "data.csv", data), target="y", delimiter=";", inputs=inputs)
    passed.pass_through([PassedColumn("c", "c")])
    with pytest.raises(SourceError, match="the header repeats 'c'"):
        passed.open()


@pytest.mark.parametrize("again", [b"a,b,label", b'a,"b",label', b"A, b,LABEL", b'"A ",B,Label'])
@pytest.mark.parametrize("at_once", [1, 100])
def test_a_header_that_comes_again_is_skipped_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, again: bytes, at_once: int
) -> None:
    caplog.set_level("INFO")
    part = b"1,2,yes\na,b,no\n"
    data = b"a,b,label\n" + part + again + b"\n" + part + again + b"\n" + part
    records = read(tmp_path, data, target="label", at_once=at_once)
    assert [record.y for record in records if not record.blank] == ["yes", "no"] * 3
    assert [record.blank for record in records] == [False, False, True] * 2 + [False] * 2
    assert caplog.messages == [
        f"{tmp_path}/data.csv: the header is repeated at line 4 (offset 25): the daemon skips each repetition"
    ]
    consistent(records, data, start=10)


@pytest.mark.parametrize("again", [b"label,a,b", b'Label ,"B",a'])
@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_a_header_in_another_order_ends_what_is_read(tmp_path: Path, again: bytes, at_once: int) -> None:
    """Also behind an open quote, and again at each restart, until the file is mended."""
    before = b'a,b,label\n1,2,yes\n3,"4,no\n5,6,yes\n'
    path = written(tmp_path / "data.csv", before + again + b"\n7,8,no\n")
    records: list[Record] = []
    with CsvSource(path, target="label") as source:
        source.open()
        for _ in range(2):
            with pytest.raises(
                SourceError, match=rf"data.csv: the header is repeated with .* at line 5 \(offset {len(before)}\): "
            ):
                poll_to_the_end(source, at_once, records)
            source.open({0: source.lasting(records[-1].next)})
        path.write_bytes(before + b"a,b,label\n7,8,no\n")
        source.open({0: source.lasting(records[-1].next)})
        records += source.poll(100, timeout=0)
    assert [record.y for record in records if not record.blank] == ["yes", None, "yes", "no"]
    assert reasons(records) == [None, "csv_width", None, None, None]


def poll_to_the_end(source: CsvSource, at_once: int, into: list[Record]) -> None:
    while polled := source.poll(at_once, timeout=0):
        into += polled


def test_names_among_values_are_no_header(tmp_path: Path) -> None:
    """Nor is a number that is the name of a column, nor one in other letters where these tell columns apart."""
    assert [record.y for record in read(tmp_path, b"a,b\na,a\nb,\nB,x\n", target="b")] == ["a", None, "x"]
    assert [record.y for record in read(tmp_path, b"1,2,3\n3,2,1\n2,1,3\n", target="3")] == ["1", "3"]
    assert [record.y for record in read(tmp_path, b"a,A\nA,A\na,a\n", target="A")] == ["A", "a"]
    assert [record.y for record in read(tmp_path, b"a\nA\nb\n", target="a")] == ["A", "b"]


def test_words_never_seen_before_do_not_fill_the_memory(tmp_path: Path) -> None:
    data = b"a\n" + b"".join(b"word-%d\n" % i for i in range(30_000))
    assert held_after(CsvSource(written(tmp_path / "data.csv", data))) < 3_000_000


def test_a_header_may_hold_line_ends(tmp_path: Path) -> None:
    data = b'"a\nb",c\n1,2\n'
    records = read(tmp_path, data, multiline=True)
    assert records[0].x == {"a\nb": 1.0, "c": 2.0}
    consistent(records, data, start=8)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("at_once", [7, 10_000])
def test_every_record_before_a_truncation_is_delivered(tmp_path: Path, suffix: str, at_once: int) -> None:
    data = b"a,b\n" + b"".join(b'%d,"x\ny%d"\n' % (number, number * 7919 % 1009) for number in range(1500))
    path = written(tmp_path / f"data.csv{suffix}", data)
    path.write_bytes(path.read_bytes()[:-200])
    records: list[Record] = []
    with CsvSource(path, multiline=True) as source:
        source.open()
        with pytest.raises(SourceError, match="data end early") as raised:
            poll_to_the_end(source, at_once, records)
    place = int(str(raised.value).split("at byte ")[1].split(" of")[0].replace(",", ""))
    assert len(records) > 500
    # The record in which the data end is not whole; the one before it is there.
    assert records[-1].next.offset == data.rindex(b'"\n', 0, place) + 2
    assert [record.x["a"] for record in records] == list(range(len(records)))


LINES_LIKE_ROWS = b"\n".join(b"%d,note,maybe" % number for number in range(12_000))


"""A text of more than 131,072 characters, where the csv module stops by default."""


def with_text(text: bytes) -> bytes:
    return b'id,text,y\n1,short,yes\n2,"' + text + b'",no\n3,short,yes\n'


@pytest.mark.parametrize("multiline", [True, False])
@pytest.mark.parametrize("limit", [100, 100_000])
@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_beyond_max_record_bytes_it_is_one_dead_letter(
    tmp_path: Path, name: str, limit: int, *, multiline: bool
) -> None:
    data = with_text(LINES_LIKE_ROWS)
    records = read(tmp_path, data, name, target="y", multiline=multiline, max_record_bytes=limit)
    assert reasons(records) == [None, "too_long", None]
    assert records[1].raw == data[len(b"id,text,y\n1,short,yes\n") :][:limit]
    length = len(LINES_LIKE_ROWS) + len(b'2,"",no')
    assert records[1].fault is not None
    assert records[1].fault.detail == f"{length:,} bytes, more than max_record_bytes ({limit:,})"
    consistent(records, data, start=10)


def test_a_physical_line_beyond_the_limit_may_open_a_quote(tmp_path: Path) -> None:
    data = b'a,b\n1,"' + b"x" * 300 + b'\n5,6\n7,8"\n' + b"y" * 300 + b',"z\n1,2"\n3,4\n'
    records = read(tmp_path, data, max_record_bytes=100)
    assert reasons(records) == ["too_long", "too_long", None]
    assert records[2].x == {"a": 3.0, "b": 4.0}
    consistent(records, data, start=4)


def test_without_multiline_the_lines_of_a_quoted_field_are_one_dead_letter(tmp_path: Path) -> None:
    data = b'a,b,y\n1,x,t\n2,"5,6,t\r\n7,8,f\n9",f\n3,z,t\n'
    source = CsvSource(written(tmp_path / "data.csv", data), target="y")
    records = drain(source)
    assert reasons(records) == [None, "open_quote", None]
    assert records[1].fault is not None
    assert records[1].fault.detail == "a quoted field spans 3 lines"
    assert records[1].raw == b'2,"5,6,t\r\n7,8,f\n9",f'
    assert [record.x.get("a") for record in records] == [1.0, None, 3.0]
    consistent(records, data, start=6)
    # A replay has it alone.
    alone = source.decode(records[1].raw, records[1].position, records[1].next)
    assert alone.x == {"a": 2.0, "b": "5,6,t\r\n7,8,f\n9"}


@pytest.mark.parametrize("multiline", [True, False])
@pytest.mark.parametrize("name", ["data.csv", "data.csv.zst"])
def test_a_quote_without_an_end_costs_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, multiline: bool
) -> None:
    monkeypatch.setattr(joining, "REACH", 2000)
    more = b"3,4\n" * 1000
    for data in (
        b'a,b\n1,"2\n' + more,  # to the end of the file
        b'a,b\n1,"2\n' + more + b'5,"6"\n' + more,  # what follows the next quote says that it closes nothing
        b'a,b\n1,"2\n' + more + b'5",6\n',  # beyond reach
    ):
        records = read(tmp_path, data, name, multiline=multiline, max_record_bytes=100)
        assert reasons(records)[0] == "csv_width"
        assert {record.fault for record in records[1:]} == {None}
        assert len(records) == data.count(b"\n") - 1
        consistent(records, data, start=4)


def test_memory_is_bounded_however_long_a_quoted_field_is(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", with_text(LINES_LIKE_ROWS * 5))
    peaks = []
    for _ in range(3):  # threads of other tests may be at work during one of them
        tracemalloc.start()
        records = drain(CsvSource(path, target="y", max_record_bytes=1000))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert reasons(records) == [None, "too_long", None]
    assert min(peaks) < 6_000_000


@pytest.mark.parametrize("multiline", [True, False])
def test_a_followed_file_waits_for_the_end_of_a_quote_and_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, multiline: bool
) -> None:
    monkeypatch.setattr(csv_module, "LOG_SECONDS", 0.0)
    path = written(tmp_path / "data.csv", b'a,b\n1,2\n3,"x\n')
    with (
        CsvSource(path, follow=True, multiline=multiline, max_record_bytes=1000) as source,
        path.open("ab", buffering=0) as file,
    ):
        source.open()
        assert [record.x for record in source.poll(10, timeout=0)] == [{"a": 1.0, "b": 2.0}]
        for _ in range(300):
            assert source.poll(10, timeout=0) == []
            file.write(b"5,6\n5,6\n")
        assert caplog.record_tuples == [("streamkernel.connectors.files.csv", logging.WARNING, caplog.messages[0])]
        assert "data.csv: the record at line 3 (offset 8) opens a quote that is not closed yet" in caplog.text
        file.write(b'"\n7,8\n')
        records = source.poll(10, timeout=0) + source.poll(10, timeout=0)
        assert reasons(records) == ["too_long", None]
        assert records[1].x == {"a": 7.0, "b": 8.0}
