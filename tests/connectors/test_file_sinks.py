"""Sinks of JSON lines and CSV: what is durable, what others see, what a restart cuts off, what the system refuses."""

from __future__ import annotations

import errno
import io
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draining import unpack

from streamkernel.connectors import CsvSink, JsonLinesSink, Position, SinkError
from streamkernel.connectors.encode import to_json
from streamkernel.connectors.files import output
from streamkernel.daemon.base.retry import may_pass

SUFFIXES = ["", ".gz", ".zst"]


SINKS = [JsonLinesSink, CsvSink]


def lines(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"prediction": number, "score": number / 7} for number in range(start, start + count)]


def expected(sink: type, count: int) -> bytes:
    if sink is JsonLinesSink:
        return b"".join(to_json(line) + b"\n" for line in lines(count))
    return (
        b"prediction,score\n" + "".join(f"{line['prediction']},{line['score']!r}\n" for line in lines(count)).encode()
    )


def length_of(mark: dict[str, Any] | None) -> int:
    assert mark is not None
    return int(mark["length"])


def write_and_flush(sink: JsonLinesSink | CsvSink, batch: list[dict[str, Any]]) -> None:
    sink.write(batch)
    sink.flush()


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_restart_cuts_off_what_came_after_the_checkpoint(
    tmp_path: Path, sink: type[JsonLinesSink | CsvSink], suffix: str
) -> None:
    path = tmp_path / f"out{suffix}"
    with sink(path) as out:
        out.open()
        out.write(lines(3))
        mark = out.flush()
        out.write([{"prediction": -1}])
    with sink(path) as out:
        out.open(mark)
        out.write(lines(2, start=3))
        out.flush()
    assert unpack(path.read_bytes(), suffix) == expected(sink, 5)


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_lines_make_the_same_bytes(tmp_path: Path, sink: type[JsonLinesSink | CsvSink], suffix: str) -> None:
    for name in ("one", "two"):
        with sink(tmp_path / f"{name}{suffix}") as out:
            out.open()
            for start in range(0, 50, 10 if name == "one" else 25):
                out.write(lines(10 if name == "one" else 25, start))
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_an_error_and_costs_no_line(
    tmp_path: Path, sink: type[JsonLinesSink | CsvSink], suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"out{suffix}"
    room = 150
    write = os.write

    def write_into_what_is_left(descriptor: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = write(descriptor, data[:room])
        room -= taken
        return taken

    monkeypatch.setattr(output, "BUFFER_BYTES", 100)
    monkeypatch.setattr(output.os, "write", write_into_what_is_left)
    out = sink(path)
    out.open()
    out.write(lines(1))
    with pytest.raises(SinkError, match=r"out.*: No space left on device$"):
        write_and_flush(out, lines(99, start=1))
    for _ in range(2):
        with pytest.raises(SinkError, match="No space left"):
            out.flush()
    assert path.stat().st_size == 150
    room = 10**6
    assert length_of(out.flush()) == path.stat().st_size
    out.write(lines(1, start=100))
    out.close()
    # The lines handed over in the call that failed are there as well, once.
    assert unpack(path.read_bytes(), suffix) == expected(sink, 101)


def test_standard_output_may_be_redirected(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdout", elsewhere)
    with JsonLinesSink("-") as out:
        out.open()
        out.write([{"a": 1}])
    assert elsewhere.buffer.getvalue() == b'{"a":1}\n'  # type: ignore[attr-defined]


VALUES: list[tuple[Any, bytes]] = [
    (np.float64(0.1), b"0.1"),
    (np.float32(0.5), b"0.5"),
    (np.int64(-3), b"-3"),
    (np.bool_(True), b"true"),
    (np.str_("a"), b'"a"'),
    (np.array([1.5, 2.5]), b"[1.5,2.5]"),
    ({np.int64(1): np.float64(0.5)}, b'{"1":0.5}'),
    ({True: 0.5, False: 0.5}, b'{"true":0.5,"false":0.5}'),
    ({np.bool_(True): 1}, b'{"true":1}'),
    ({1: 1, 2.5: 2, None: 3}, b'{"1":1,"2.5":2,"null":3}'),
    ({np.float64(2.5): 2}, b'{"2.5":2}'),
    (math.nan, b"null"),
    (-math.inf, b"null"),
    ([2**64, math.nan], b"[18446744073709551616,null]"),
    (Position("s", 0, 1), b'{"stream":"s","partition":0,"offset":1,"known":null}'),
    ([2**64, Position("s", 0, 1)], b'[18446744073709551616,{"stream":"s","partition":0,"offset":1,"known":null}]'),
    ("é\n", '"é\\n"'.encode()),
    ("\ud800", b'"\\ud800"'),
    (None, b"null"),
]


def test_json(subtests: pytest.Subtests) -> None:
    for value, text in VALUES:
        with subtests.test(value=value, text=text):
            assert to_json(value) == text
            json.loads(text)


def test_the_disk_is_waited_for_only_where_something_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    with JsonLinesSink(tmp_path / "out.jsonl") as out:
        out.open()
        monkeypatch.setattr(os, "fsync", waits.append)
        assert [length_of(out.flush()), length_of(out.flush()), len(waits)] == [0, 0, 1]
        out.write(lines(1))
        mark = out.flush()
        assert length_of(mark) == len(expected(JsonLinesSink, 1))
        assert out.flush() == mark
        assert len(waits) == 2
    with JsonLinesSink(tmp_path / "out.jsonl") as out:
        out.open(mark)
        waits.clear()
        out.flush()
        assert len(waits) == 1


def test_a_disk_that_lost_something_once_is_not_believed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    out = JsonLinesSink(tmp_path / "out.jsonl")
    out.open()
    mark = out.flush()
    out.write(lines(1))
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(SinkError):
        out.flush()
    monkeypatch.undo()
    for again in (out.flush, out.close):
        with pytest.raises(SinkError, match=r"out\.jsonl: did not reach the disk \(Input/output error\)") as raised:
            again()
        assert not may_pass(raised.value)
    with JsonLinesSink(tmp_path / "out.jsonl") as out:
        out.open(mark)
        out.write(lines(1))
    assert (tmp_path / "out.jsonl").read_bytes() == expected(JsonLinesSink, 1)


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
