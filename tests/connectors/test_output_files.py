"""What of a file that is there already an output cuts off, keeps, empties, or does not touch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from draining import pack, unpack

from streamkernel.connectors import CsvSink, JsonLinesSink, SinkError
from streamkernel.connectors.files import output as pipes

SUFFIXES = ["", ".gz", ".zst"]
SINKS = [JsonLinesSink, CsvSink]
FileSink = JsonLinesSink | CsvSink


def lines(start: int, stop: int, word: str = "a") -> list[dict[str, Any]]:
    return [{"n": number, "word": word} for number in range(start, stop)]


def write(sink: FileSink, batch: list[dict[str, Any]], mark: Any = None) -> Any:
    """Write lines and give the mark behind them."""
    with sink:
        sink.open(mark)
        sink.write(batch)
        return sink.flush()


@contextmanager
def untouched(*paths: Path) -> Iterator[None]:
    before = [(path.read_bytes(), path.stat().st_ino) for path in paths]
    yield
    assert [(path.read_bytes(), path.stat().st_ino) for path in paths] == before


class TestMarks:
    """A mark knows its file by what is in it."""

    @pytest.mark.parametrize("sink", SINKS)
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_another_file_is_not_cut(self, tmp_path: Path, sink: type[FileSink], suffix: str) -> None:
        ours, other = tmp_path / f"ours{suffix}", tmp_path / f"other{suffix}"
        mark = write(sink(ours), lines(0, 3))
        write(sink(other), lines(0, 1000, "b"))
        for existing in ("refuse", "append", "replace"):
            for fault in (sink(other, existing).open, sink(other, existing).find_problem):
                with (
                    untouched(other),
                    pytest.raises(SinkError, match=r"other.*recorded at the checkpoint.*not touched"),
                ):
                    fault(mark)

    @pytest.mark.parametrize("where", ["beginning", "end"])
    def test_a_file_that_differs_in_one_byte_is_not_cut(self, tmp_path: Path, where: str) -> None:
        path = tmp_path / "out"
        mark = write(JsonLinesSink(path), lines(0, 2000))
        data = bytearray(path.read_bytes())
        data[0 if where == "beginning" else -2] ^= 1
        path.write_bytes(bytes(data) + b"{}\n")
        said = (
            "its first bytes are not" if where == "beginning" else f"its bytes before byte {mark['length']:,} are not"
        )
        with untouched(path), pytest.raises(SinkError, match=said):
            JsonLinesSink(path).open(mark)

    def test_a_mark_of_no_bytes_is_that_of_the_very_file(self, tmp_path: Path) -> None:
        ours, other = tmp_path / "ours", tmp_path / "other"
        mark = write(JsonLinesSink(ours), [])
        other.write_bytes(b"mine\n")
        with untouched(other), pytest.raises(SinkError, match=r"other: .*5 bytes .*no checkpoint"):
            JsonLinesSink(other).open(mark)
        write(JsonLinesSink(ours), lines(0, 3), mark)
        write(JsonLinesSink(ours), lines(0, 2), mark)
        assert ours.read_bytes().count(b"\n") == 2
        ours.unlink()
        ours.write_bytes(b"mine\n")  # often of the same number (inode)
        with untouched(ours), pytest.raises(SinkError, match=r"ours: .*5 bytes .*no checkpoint"):
            JsonLinesSink(ours).open(mark)
        ours.unlink()
        write(JsonLinesSink(ours), lines(0, 4), mark)  # nothing of it is missed

    @pytest.mark.parametrize("mark", [{"length": True, "head": "0", "tail": "0", "file": None}, {}, 7])
    def test_what_is_no_mark_of_a_file_is_refused(self, tmp_path: Path, mark: Any) -> None:
        (tmp_path / "out").write_bytes(b"{}\n")
        with untouched(tmp_path / "out"), pytest.raises(SinkError, match=r"in the checkpoint is not from a"):
            JsonLinesSink(tmp_path / "out").open(mark)


class TestExisting:
    """A file that holds something and that no mark knows."""

    @pytest.mark.parametrize("sink", SINKS)
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_it_is_refused_by_default(self, tmp_path: Path, sink: type[FileSink], suffix: str) -> None:
        path = tmp_path / f"out{suffix}"
        path.write_bytes(b"mine")
        for fault in (sink(path).open, sink(path).find_problem):
            with (
                untouched(path),
                pytest.raises(SinkError, match=r"4 bytes .* existing: append"),
            ):
                fault()
        path.write_bytes(b"")
        write(sink(path), lines(0, 1))

    @pytest.mark.parametrize("sink", SINKS)
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_it_is_replaced(self, tmp_path: Path, sink: type[FileSink], suffix: str) -> None:
        path = tmp_path / f"out{suffix}"
        path.write_bytes(b"mine")
        write(sink(path, "replace"), lines(0, 2))
        once = path.read_bytes()
        write(sink(path, "replace"), lines(0, 2))
        assert path.read_bytes() == once

    @pytest.mark.parametrize("sink", SINKS)
    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize("end", [b"\n", b""])
    def test_lines_are_appended_to_it(self, tmp_path: Path, sink: type[FileSink], suffix: str, end: bytes) -> None:
        path, whole = tmp_path / f"out{suffix}", tmp_path / "whole"
        write(sink(whole), lines(0, 3))
        expected = whole.read_bytes()
        written = [line + b"\n" for line in expected.splitlines()]
        path.write_bytes(pack(b"".join(written[:-1]).removesuffix(b"\n") + end, suffix))
        # Killed before a checkpoint, twice: nothing was written yet, and a line end only once.
        for _ in range(2):
            mark = write(sink(path, "append"), [])
        write(sink(path, "append"), lines(7, 9), mark)
        write(sink(path, "append"), lines(2, 3), mark)
        assert unpack(path.read_bytes(), suffix) == expected

    def test_other_columns_are_not_appended(self, tmp_path: Path) -> None:
        path = tmp_path / "out.csv"
        path.write_bytes(b"word,n,more\n")
        with CsvSink(path, "append") as sink, untouched(path):
            sink.open()
            with pytest.raises(SinkError, match=r"n, word .*appended .* word, n, more"):
                sink.write(lines(0, 1))


class TestLock:
    """One writer a file."""

    def test_a_second_writer_is_kept_out_by_whatever_name(self, tmp_path: Path) -> None:
        path = tmp_path / "out"
        (tmp_path / "link").symlink_to(path)
        with JsonLinesSink(path) as first:
            first.open()
            first.write(lines(0, 3))
            mark = first.flush()
            (tmp_path / "hard").hardlink_to(path)
            first.write(lines(3, 6))
            with pytest.raises(SinkError, match=r"hard: another output .*\(this process\)"):
                JsonLinesSink(tmp_path / "hard").open(mark)
            with pytest.raises(SinkError, match=r"link: another output writes to it"):
                JsonLinesSink(tmp_path / "link", "replace").open()
        assert path.read_bytes().count(b"\n") == 6
        write(JsonLinesSink(tmp_path / "link"), lines(3, 4), mark)
        assert path.read_bytes().count(b"\n") == 4


class TestSetAside:
    """What an earlier run wrote makes room, generation by generation, and nothing else does."""

    def test_generations(self, tmp_path: Path) -> None:
        path, old = tmp_path / "out", tmp_path / "out.old"
        before = None
        for generation in range(4):
            mark = write(JsonLinesSink(path), lines(0, generation % 2 * 3))
            JsonLinesSink(path).set_aside(mark, before)
            assert not path.exists()
            assert old.read_bytes().count(b"\n") == generation % 2 * 3
            before = mark

    def test_what_is_not_ours_stays(self, tmp_path: Path) -> None:
        path, old = tmp_path / "out", tmp_path / "out.old"
        mark = write(JsonLinesSink(tmp_path / "other"), lines(0, 3))
        JsonLinesSink(path).set_aside(mark)  # there is none
        path.write_bytes(b"mine\n")
        with untouched(path):
            JsonLinesSink(path).set_aside(mark)
        path.unlink()
        mark = write(JsonLinesSink(path), lines(0, 3))
        old.write_bytes(b"mine, too\n")
        for known, before in ((mark, None), (mark, mark), (None, None), (None, mark)):
            with untouched(path, old), pytest.raises(SinkError, match=r"out\.old, which is another"):
                JsonLinesSink(path).set_aside(known, before)
        with untouched(path):
            JsonLinesSink(path, "append").set_aside(mark)
            JsonLinesSink(path, "replace").set_aside(mark)


class TestWhatIsNoFile:
    """Pipes and devices are neither locked nor cut, and do not hold anything up."""

    def test_devices(self) -> None:
        with JsonLinesSink("/dev/null") as first, JsonLinesSink("/dev/null") as second:
            for sink in (first, second):
                assert not sink.exactly_once
                sink.find_problem()
                sink.open()
                sink.write(lines(0, 10_000))
                assert sink.flush() is None

    def test_a_pipe(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        sink = JsonLinesSink(path)
        with pytest.raises(SinkError, match="pipe: this pipe has no reader:"):
            sink.open()
        monkeypatch.setattr(pipes, "PATIENCE_MILLISECONDS", 1)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        sink.open()
        with pytest.raises(SinkError, match="pipe: cannot be written: it has no reader"):
            sink.write(lines(0, 50_000))  # a pipe takes 64 KB
        assert sink.waiting_bytes > 500_000
        os.set_blocking(reader, True)
        read: list[bytes] = []
        thread = threading.Thread(target=lambda: read.extend(iter(lambda: os.read(reader, 2**16), b"")))
        thread.start()
        monkeypatch.setattr(pipes, "PATIENCE_MILLISECONDS", 10_000)
        assert sink.flush() is None
        sink.close()
        thread.join()
        os.close(reader)
        assert b"".join(read).count(b"\n") == 50_000


def test_outputs_follow_the_umask(tmp_path: Path) -> None:
    for mask, mode in ((0o022, 0o644), (0o077, 0o600), (0o007, 0o660)):
        before = os.umask(mask)
        try:
            write(JsonLinesSink(tmp_path / f"{mask:o}" / "out"), [])
        finally:
            os.umask(before)
        assert (tmp_path / f"{mask:o}" / "out").stat().st_mode & 0o777 == mode
