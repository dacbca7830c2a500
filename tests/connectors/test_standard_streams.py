"""Standard input and output, with real pipes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("processes")

READER = """
import sys
from streamkernel.connectors import CsvSource, JsonLinesSink, JsonLinesSource, SourceError
source = {source}
with source, JsonLinesSink("-") as sink:
    source.open()
    sink.open()
    while not source.exhausted:
        for record in source.poll(100, timeout=30):
            sink.write([{{"x": record.x, "y": record.y, "at": record.position, "fault": record.fault}}])
        sink.flush()
"""


@contextmanager
def reading(source: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", READER.format(source=source)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def receive(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_csv_from_a_pipe_comes_line_by_line() -> None:
    with reading('CsvSource("-", target="y")') as process:
        send(process, b"\xef\xbb\xbfa")
        send(process, b",y\n1,t\n2")
        # The pipe is still open: a record is handed out as soon as its line is whole.
        first = receive(process)
        assert (first["x"], first["y"]) == ({"a": 1.0}, "t")
        assert first["at"] == {"stream": "-", "partition": 0, "offset": 7, "known": None}
        send(process, b",f\n")
        assert receive(process)["x"] == {"a": 2.0}
        send(process, b"\n3,t")
        assert process.stdin is not None
        process.stdin.close()
        assert receive(process)["x"] == {}
        assert receive(process)["x"] == {"a": 3.0}
        assert process.wait(timeout=30) == 0


def test_a_header_from_a_pipe_is_checked_when_it_comes() -> None:
    with reading('CsvSource("-", target="y")') as process:
        out, err = process.communicate(b"a,b\n1,2\n", timeout=30)
        assert out == b""
        assert b"SourceError: standard input: there is no column 'y' for the target" in err


def test_a_reader_that_has_gone_is_an_error() -> None:
    with reading('JsonLinesSource("-")') as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        send(process, b'{"a": 1}\n')
        err = process.stderr.read()
        assert b"SinkError: standard output: cannot be written: Broken pipe" in err
        # Nothing is written a second time at exit.
        assert b"Exception ignored" not in err
