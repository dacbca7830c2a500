"""Runs over several files and over a directory that is watched: exactly once, whatever kills them or arrives."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from connectors.files.order import FilesPlace
from streamkernel.daemon import cli
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.check import check
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.configurations import MODEL, lines_of
from tests.daemon.conftest import Home, write_stream

PARTS = 5
PATTERN = {"kind": "csv", "path": "in/part-*", "target": "y"}


def prepared(home: Home, n_records: int = 500, **sections: Any) -> Home:
    """Write the parts of one stream, some compressed, each with the header."""
    (home.folder / "in").mkdir()
    write_stream(home.folder / "whole.csv", PARTS * n_records)
    header, *lines = (home.folder / "whole.csv").read_text().splitlines(keepends=True)
    for number in range(PARTS):
        text = (header + "".join(lines[number * n_records : (number + 1) * n_records])).encode()
        name = f"in/part-{2 * number + 8}.csv"
        if number % 2:
            (home.folder / f"{name}.gz").write_bytes(gzip.compress(text))
        else:
            (home.folder / name).write_bytes(text)
    home.configure(source=PATTERN, **{"checkpoint": {"directory": "out/state", "every_records": 100}, **sections})
    return home


@pytest.fixture
def parts(home: Home) -> Home:
    return prepared(home, 80)


def test_it_learns_as_from_one_file(parts: Home) -> None:
    run(prepare(parts.config))
    several, lines = parts.header(), parts.lines("out/predictions.jsonl")
    places = [(line["position"]["partition"], line["position"]["offset"]) for line in lines]
    assert len(set(places)) == len(places)
    assert places == sorted(places)
    assert {partition for partition, _ in places} == set(range(PARTS))
    ((stream, partition, _),) = several["positions"]
    place = FilesPlace.parse(stream)
    assert place is not None
    assert place.finished
    assert partition == PARTS - 1
    assert [Path(one).name.partition(".")[0] for one in place.order.files] == [
        f"part-{2 * n + 8}" for n in range(PARTS)
    ]
    run(prepare(parts.configure(source={**PATTERN, "path": "whole.csv"})), fresh=True)
    whole = parts.header()
    assert (whole["model"], whole["account"]) == (several["model"], several["account"])
    assert [line["prediction"] for line in parts.lines("out/predictions.jsonl")] == [one["prediction"] for one in lines]


def test_check_and_evaluate(parts: Home) -> None:
    found = check(prepare(parts.config))
    assert "source: 5 csv files in/part-*" in found.good
    assert evaluate(prepare(parts.config), StopSignals()).view.account["consumed"] == PARTS * 80
    watched = prepare(parts.configure(source={**PATTERN, "path": "in", "watch": True}))
    assert "source: csv files in in, watched" in check(watched).good
    with pytest.raises(DaemonError, match="evaluate needs a source that ends, this one is watched"):
        evaluate(watched, StopSignals())
    (parts.folder / "in/part-9.csv").write_text("a,y\n1,no\n")
    (bad,) = check(prepare(parts.configure(source=PATTERN))).bad
    assert "part-9.csv: its columns are not those of the files before it, it lacks 'b', 'colour'" in bad


def test_dead_letters_of_finished_files_come_back(parts: Home) -> None:
    run(prepare(parts.config))
    before = parts.header()
    letters = (parts.folder / "out/dead.jsonl").read_text().replace('"raw":"inf', '"raw":"1')
    (parts.folder / "mended.jsonl").write_text(letters)
    for path in (parts.folder / "in").iterdir():
        path.unlink()
    for _ in range(2):
        cli.main(["replay", "mended.jsonl", "config.yaml"])
        header = parts.header()
        mended = letters.count('"infinite"')
        assert mended > 0
        assert header["account"]["dead"] == before["account"]["dead"] - mended
        assert header["positions"] == before["positions"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (
            "path: [a.csv, b.csv], follow: true",
            "source.follow: not with several files: watch: true waits for new files",
        ),
        ("path: [a, b], watch: true", "source.watch: one directory or pattern can be watched, not a list: give a"),
        ("path: ['-', b]", "source: standard input is not one of several files: write it to a file, or read it alone"),
        (
            "path: '-', watch: true",
            "source: standard input is not one of several files: write it to a file, or read it alone",
        ),
        ("path: []", "source.path: must not be empty"),
        (
            "path: /",
            "source.path: / is a directory: give a pattern such as /*.csv to read its files, or set watch: true",
        ),
        ("path: [3]", "source.path: must be a text"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, source: str, line: str) -> None:
    (found,) = lines_of(tmp_path, f"{MODEL}source: {{kind: csv, target: y, {source}}}\n")
    assert found.startswith(line)


def test_outputs_are_not_written_where_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("a,y\n")
    for path, out, ok in (
        ("in", "in/out.jsonl", False),
        ("in/*.csv", "in/out.csv", False),
        ("in/*.csv", "in/out.jsonl", True),
    ):
        text = f"{MODEL}source: {{kind: csv, target: y, path: '{path}', watch: true}}\n"
        text += f"predictions: {{kind: jsonl, path: {out}}}\n"
        if ok:
            (tmp_path / "config.yaml").write_text(text)
            prepare(tmp_path / "config.yaml", {})
        else:
            (line,) = lines_of(tmp_path, text)
            assert line.startswith("predictions.path: must not be where source.path finds files")
