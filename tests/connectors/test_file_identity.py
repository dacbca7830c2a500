"""What is kept of a file to know it again: its first bytes, those read last, and the name of a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamkernel.connectors.files.bytes import File
from streamkernel.connectors.files.places import FilePlace, Head, identity
from streamkernel.connectors.files.stream import FileStream
from streamkernel.connectors.ports import Position


@pytest.mark.parametrize("block", [1, 7, 5000])
@pytest.mark.parametrize("first_line", [3, 4000, 5000])
def test_the_head_reaches_behind_the_first_line(block: int, first_line: int) -> None:
    data = b"x" * (first_line - 1) + b"\n" + b"1\n" * 5000
    head = Head()
    for at in range(0, len(data), block):
        head.add(data[at : at + block])
    length = max(4096, first_line + 2048)
    assert head.identity_at(len(data)) == identity(data[:length])
    assert head.identity_at(length + 1) == identity(data[:length])
    assert head.identity_at(first_line) == identity(data[:first_line])


def test_a_first_line_without_end_is_bounded() -> None:
    head = Head(b"x" * 2**21)
    head.add(b"x")
    assert len(head.data) == 2**20 + 2048


def test_what_is_kept_of_a_stream_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamkernel.connectors.files.stream.MOST_RECENT", 10_000)
    monkeypatch.setattr("streamkernel.connectors.files.bytes.BLOCK_BYTES", 1000)
    path = tmp_path / "data"
    path.write_bytes(b"a" * 1000 + b"b" * 100_000)
    stream = FileStream(File(path))
    while stream.read():
        pass
    tails = [FilePlace.of(stream.lasting(Position(identity(b""), 0, at))).tail for at in (200, stream.offset)]
    assert tails == ["", identity(b"b" * 4096)]
    stream.close()
