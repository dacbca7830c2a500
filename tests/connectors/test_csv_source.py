from pathlib import Path
from typing import Any

import pytest
from draining import consistent, drain, held_after, written

from streamkernel.connectors import CsvSource, Record, SourceError
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files.header import delimiter_hint
from streamkernel.connectors.pass_through import PassedColumn


def read(tmp_path: Path, data: bytes, at_once: int = 1000, **options: Any) -> list[Record]:
    return drain(CsvSource(written(tmp_path / "data.csv", data), **options), at_once=at_once)


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


def test_a_string_beyond_the_limit_is_a_fault(tmp_path: Path) -> None:
    data = b"a,y\nabc,x\nabcd,x\nabc,xxxx\n" + b"9" * 50 + b",x\n"
    records = read(tmp_path, data, target="y", max_string=3)
    assert reasons(records) == [None, "string_too_long", "string_too_long", None]


def test_a_record_beyond_the_limit_is_a_fault(tmp_path: Path) -> None:
    data = b"a,b\n1,2\n" + b"1" * 20 + b",2\n3,4\n"
    records = read(tmp_path, data, max_record_bytes=10)
    assert reasons(records) == [None, "too_long", None]
    assert records[1].fault is not None
    assert records[1].fault.detail == "22 bytes, more than max_record_bytes (10)"
    assert records[1].raw == b"1" * 10
    consistent(records, data, start=4)


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
