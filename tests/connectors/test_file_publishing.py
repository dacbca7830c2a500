"""Sinks of files show their lines to others before they are durable, and pipes get them at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamkernel.connectors import CsvSink, JsonLinesSink
from streamkernel.connectors.files import output

LINES = [{"n": number} for number in range(3)]


@pytest.mark.parametrize("sink", [JsonLinesSink, CsvSink])
def test_lines_are_in_the_file_and_not_made_durable(
    tmp_path: Path, sink: type[JsonLinesSink | CsvSink], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(output.os, "fsync", synced.append)
    path = tmp_path / "out"
    with sink(path) as out:
        out.open()
        out.write(LINES)
        mark = out.flush()
        whole, synced[:] = path.read_bytes(), []
        out.write(LINES)
        assert (out.unpublished, path.read_bytes()) == (3, whole)
        out.publish()
        written = path.read_bytes()
        assert (out.unpublished, len(written.splitlines()), synced) == (0, len(whole.splitlines()) + 3, [])
    with sink(path) as out:  # after a kill: what no checkpoint knows is cut off, and comes again
        out.open(mark)
        assert path.read_bytes() == whole
        out.write(LINES)
    assert path.read_bytes() == written


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_where_members_of_a_compressed_file_end_is_not_for_the_clock(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    with JsonLinesSink(path) as out:
        out.open()
        out.write(LINES)
        out.publish()
        assert (out.unpublished, path.read_bytes()) == (3, b"")
        out.flush()
        assert out.unpublished == 0


def test_a_pipe_gets_each_line_at_once_and_its_reader_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PATIENCE_MILLISECONDS", None)  # what would wait fails
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with JsonLinesSink(tmp_path / "pipe") as out:
        out.open()
        out.write(LINES)
        assert (out.unpublished, os.read(reader, 100)) == (0, b'{"n":0}\n{"n":1}\n{"n":2}\n')
        out.write([{"n": 100_000 * "x"}])  # more than a pipe holds
        assert 0 < out.waiting_bytes < 100_000
        out.publish()
        assert out.unpublished == 1
        got = b""
        while out.unpublished:
            got += os.read(reader, 2**16)
            out.publish()
        got += os.read(reader, 2**17)
        assert got == b'{"n":"' + 100_000 * b"x" + b'"}\n'
    os.close(reader)
