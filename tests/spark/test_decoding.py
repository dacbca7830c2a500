"""Rows of files as Spark parts them."""

import pyarrow as pa
import pytest

from streamkernel.spark.decoding import CsvChunks, RecordSettings


def test_a_csv_file_in_parts_has_its_header_in_the_first_one():
    """Spark may give several parts of a file to one task, in any order and in one batch."""
    settings = RecordSettings("y", "float", None, 256, 1000, unsupervised=False)
    chunks = CsvChunks(settings, b"a,y", ["a", "y"], ",")
    rows = {"path": ["f"] * 5, "start": [50, 0, 0, 50, 0], "value": [b"5,6", b"a,y", b"1,2", b"7,8", b"3,4"]}
    found = list(chunks([pa.record_batch(rows)]))
    assert sorted(record.y for chunk in found for record in chunk.records) == [2.0, 4.0, 6.0, 8.0]
    assert not any(chunk.dead for chunk in found)


def csv_part(*lines, max_record_bytes=1000):
    """The chunks of a part of a file that Spark began in the midst of it."""
    settings = RecordSettings("y", "str", None, 256, max_record_bytes, unsupervised=False)
    rows = {"path": ["f"] * len(lines), "start": [50] * len(lines), "value": list(lines)}
    return list(CsvChunks(settings, b"a,y", ["a", "y"], ",")([pa.record_batch(rows)]))


def test_a_header_in_another_order_ends_the_job():
    with pytest.raises(ValueError, match="f: the header is repeated with its columns in another order: split"):
        csv_part(b"5,6", b"Y,a", b"8,7")


@pytest.mark.parametrize("lines", [(b'1,"u', b"2,maybe", b'v"'), (b"1,u", b'2,"u'), (b'1,"u""', b'2,v"')])
def test_a_line_break_in_quotes_is_refused(lines):
    """The lines behind it may be in another part, where nobody knows that they are no records."""
    with pytest.raises(ValueError, match=r"^f: a quoted field continues after the line .* source.multiline: true$"):
        csv_part(*lines)


@pytest.mark.parametrize(
    "lines", [(b'1,"u', b'"x"y,v', b"3,w"), (b'5" pipe,u', b"3,w"), (b'1,"u', b"2," + b"v" * 100, b"3,w")]
)
def test_a_quote_that_is_never_closed_costs_its_line(lines):
    (chunk,) = csv_part(*lines, max_record_bytes=60)
    assert chunk.records[-1].y == "w"
    assert b'1,"u' not in [record.raw for record in chunk.records]
