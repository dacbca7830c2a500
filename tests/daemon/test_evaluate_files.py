"""Files of an evaluation: whole or not there, the others beside one that fails, and marked where it was stopped."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.cli import main
from streamkernel.daemon.monitoring import whole_file
from streamkernel.daemon.monitoring.curve_recorder import CurveRecorder
from streamkernel.daemon.monitoring.whole_file import write_whole
from streamkernel.daemon.stream.chunk_result import ChunkResult
from tests.daemon.conftest import Home, write_stream
from tests.daemon.report_page import ReportPage

MODEL = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]


@pytest.fixture
def small(here: Home) -> Home:
    write_stream(here.folder / "stream.csv", 200)
    for name in ("first", "second"):
        here.configure(model=MODEL).rename(here.folder / f"{name}.yaml")
    return here


def stop_in_the_midst(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    original: Callable[..., None] = CurveRecorder.chunk

    def chunk(recorder: CurveRecorder, done: ChunkResult) -> None:
        original(recorder, done)
        if len(recorder.evaluation.records) == 2:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(CurveRecorder, "chunk", chunk)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_evaluation_that_is_stopped_says_so(
    number: signal.Signals, small: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop_in_the_midst(monkeypatch, number)
    files = ["--json", "figures.json", "--html", "report.html"]
    assert main(["evaluate", "first.yaml", "second.yaml", *files]) == 128 + number
    told = capsys.readouterr()
    assert "first was stopped after 100 records, second was not begun" in told.err
    figures = json.loads((small.folder / "figures.json").read_text())
    assert list(figures) == ["first"]
    assert figures["first"]["stopped"] == number.name
    page = ReportPage((small.folder / "report.html").read_text("utf-8"))
    assert f"by {number.name} before the end of the source" in page.text


def test_a_run_that_fails_does_not_cost_the_one_before(small: Home, capsys: pytest.CaptureFixture[str]) -> None:
    gone = {"kind": "csv", "path": "gone.csv", "target": "y"}
    small.configure(source=gone, model=MODEL).rename(small.folder / "gone.yaml")
    files = ["--json", "figures.json", "--html", "report.html"]
    assert main(["evaluate", "first.yaml", "gone.yaml", "second.yaml", *files]) == 1
    told = capsys.readouterr()
    assert "not all was evaluated: gone failed, second was not begun" in told.err
    assert told.err.endswith("gone.csv: there is no such file\n")
    assert "accuracy" in told.out
    assert list(json.loads((small.folder / "figures.json").read_text())) == ["first"]
    assert "Evaluation of first" in (small.folder / "report.html").read_text("utf-8")


def test_one_that_came_to_its_end_says_so(small: Home) -> None:
    small.configure(model=MODEL, metrics={"port": 1}).rename(small.folder / "first.yaml")
    before = {path.name for path in small.folder.iterdir()}
    assert main(["evaluate", "first.yaml", "--json", "figures.json"]) == 0
    assert json.loads((small.folder / "figures.json").read_text())["first"]["stopped"] is None
    # Neither outputs nor checkpoints are made.
    assert {path.name for path in small.folder.iterdir()} == before | {"figures.json"}


def test_the_other_files_are_written_where_one_cannot_be(small: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "first.yaml", "--json", "/dev/full", "--html", "report.html"]) == 1
    told = capsys.readouterr()
    assert told.err.endswith("/dev/full: cannot be written: No space left on device\n")
    assert "accuracy" in told.out
    assert "Evaluation of first" in (small.folder / "report.html").read_text("utf-8")


def test_two_hard_links_of_one_file_are_refused(small: Home, capsys: pytest.CaptureFixture[str]) -> None:
    one = small.folder / "one"
    one.touch()
    (small.folder / "two").hardlink_to(one)
    assert main(["evaluate", "first.yaml", "--json", "one", "--html", "two"]) == 2
    assert capsys.readouterr().err == "--html: must differ from --json, they are the same file\n"


def test_a_full_disk_leaves_the_file_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    file.write_text("before")

    def fdopen(descriptor: int, *_: object) -> object:
        os.close(descriptor)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(whole_file.os, "fdopen", fdopen)
    with pytest.raises(DaemonError, match=r"report\.html: cannot be written: No space left"):
        write_whole(file, b"after")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_rights_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to("file")
    write_whole(link, b"after")
    assert link.is_symlink()
    assert file.read_bytes() == b"after"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_file_that_cannot_be_replaced_is_written_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("before, and longer")

    def replace(*_: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(whole_file.os, "replace", replace)
    write_whole(file, b"after")
    assert file.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [file]
