from pathlib import Path
from typing import Any

import pytest
from draining import consistent, drain, written

from streamkernel.connectors import JsonLinesSource, Record


def read(tmp_path: Path, data: bytes, **options: Any) -> list[Record]:
    return drain(JsonLinesSource(written(tmp_path / "data.jsonl", data), **options))


def test_a_byte_order_mark_is_skipped_where_files_were_put_together(tmp_path: Path) -> None:
    part = b'\xef\xbb\xbf{"a": 1, "y": 18446744073709551617}\n{"a": NaN, "y": 2}\n'
    data = part + part + b"\xef\xbb\xbf\n" + b"\xef\xbb\xbf{}}\n"
    records = read(tmp_path, data, target="y", target_type="int")
    assert [(record.x, record.y) for record in records[:4]] == [({"a": 1}, 2**64 + 1), ({}, 2)] * 2
    assert [record.blank for record in records] == [False] * 4 + [True, False]
    assert records[5].fault is not None
    assert records[5].fault.reason == "not_json"
    consistent(records, data, start=3)


def test_what_cannot_be_used_is_a_fault(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for line, reason in [
        (b"{", "not_json"),
        (b'{"a": 1}}', "not_json"),
        (b"a,b,c", "not_json"),
        (b'{"a": 01}', "not_json"),
        (b'{"a": -NaN}', "not_json"),
        (b"{'a': 1}", "not_json"),
        (b" \v\f", "not_json"),
        (b'{"a": "\\ud800"}', "not_json"),
        (b'{"\\udc00": 1, "b": NaN}', "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a": 1\x00}', "not_json"),
        (b'{"a": "\xff"}', "encoding"),
        (b"\xff", "encoding"),
        (b"[1, 2]", "not_an_object"),
        (b"null", "not_an_object"),
        (b"NaN", "not_an_object"),
        (b"12", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b'{"a": 1e999}', "infinite"),
        (b'{"a": Infinity}', "infinite"),
        (b'{"a": -Infinity}', "infinite"),
        (b'{"a": ' + b"9" * 400 + b"}", "infinite"),
        (b'{"a": ' + b"9" * 5000 + b"}", "infinite"),
        (b'{"a": [1]}', "nested"),
        (b'{"a": {"b": 1}}', "nested"),
        (b'{"a": []}', "nested"),
        (b'{"a": "' + b"x" * 257 + b'"}', "string_too_long"),
        (b'{"' + b"x" * 257 + b'": 1}', "string_too_long"),
        (b'{"y": [1]}', "target"),
        (b'{"y": {}}', "target"),
        (b'{"y": "' + b"x" * 257 + b'"}', "string_too_long"),
        (b'{"a": 1, "pad": "' + b"x" * 150_000 + b'"}', "too_long"),
    ]:
        with subtests.test(line=line, reason=reason):
            data = b'{"a": 1, "y": "x"}\n' + line + b'\n{"a": 2}\n'
            before, bad, after = read(tmp_path, data, target="y", max_record_bytes=120_000)
            assert bad.fault is not None
            assert bad.fault.reason == reason
            assert bad.raw == line[:120_000]
            assert (before.x, after.x) == ({"a": 1}, {"a": 2})
            consistent([before, bad, after], data, start=0)
