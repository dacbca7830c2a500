"""Files of a watched directory that are filled after they got their names."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path

import pytest

from streamkernel.connectors import JsonLinesSource
from tests.connectors.watching import CSV, kept, poll_all


@pytest.mark.parametrize("again", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("name", ["b.csv", "b.csv.gz", "b.jsonl.gz"])
def test_a_file_whose_header_is_written_first_is_read_once_it_has_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, again: bool
) -> None:
    """A header that is not whole yet binds no other file."""
    content = [b"y,amo", b"y,amount\nyes,3\nno,4\n"] if "csv" in name else [b"", b'{"amount": 3}\n{"amount": 4}\n']
    header, whole = map(gzip.compress, content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(header)
    with (CSV if "csv" in name else partial(JsonLinesSource, target="y"))(str(tmp_path), watch=True) as source:
        source.open()
        assert poll_all(source) == [] == poll_all(source)
        if again:
            source.open(dict(source.starting_offsets))
            assert poll_all(source) == []
        (tmp_path / name).write_bytes(whole)
        records = poll_all(source)
        assert [record.x["amount"] for record in records] == [3, 4]
        source.open(kept(source, records))
        assert poll_all(source) == []
        assert caplog.messages == []
