from pathlib import Path
from typing import Any

import pytest
from draining import consistent, drain, written

from streamkernel.connectors import CsvSource, Record, SourceError


def read(tmp_path: Path, data: bytes, **options: Any) -> list[Record]:
    return drain(CsvSource(written(tmp_path / "data.csv", data), multiline=True, **options))


def test_a_header_may_hold_line_ends(tmp_path: Path) -> None:
    data = b'"a\nb",c\n1,2\n'
    records = read(tmp_path, data)
    assert records[0].x == {"a\nb": 1.0, "c": 2.0}
    consistent(records, data, start=8)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_every_record_before_a_truncation_is_delivered(tmp_path: Path, suffix: str, at_once: int) -> None:
    data = b"a,b\n" + b"".join(b'%d,"x\ny%d"\n' % (number, number * 7919 % 1009) for number in range(5000))
    path = written(tmp_path / f"data.csv{suffix}", data)
    path.write_bytes(path.read_bytes()[:-300])
    records: list[Record] = []
    with CsvSource(path, multiline=True) as source:
        source.open()
        with pytest.raises(SourceError, match="data end early") as raised:
            poll_until_it_fails(source, at_once, records)
    place = int(str(raised.value).split("at byte ")[1].split(" of")[0].replace(",", ""))
    assert len(records) > 2000
    # The record in which the data end is not whole; the one before it is there.
    assert records[-1].next.offset == data.rindex(b'"\n', 0, place) + 2
    assert [record.x["a"] for record in records] == list(range(len(records)))


def poll_until_it_fails(source: CsvSource, at_once: int, into: list[Record]) -> None:
    while True:
        into += source.poll(at_once, timeout=0)
