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


def test_a_header_in_another_order_ends_the_job():
    settings = RecordSettings("y", "str", None, 256, 1000, unsupervised=False)
    chunks = CsvChunks(settings, b"a,y", ["a", "y"], ",")
    rows = {"path": ["f"] * 3, "start": [50] * 3, "value": [b"5,6", b"Y,a", b"8,7"]}
    with pytest.raises(ValueError, match="f: the header comes again, with its columns in another order: split"):
        list(chunks([pa.record_batch(rows)]))
