"""Runs over files that come, grow, rotate or are replaced: each record exactly once."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors import Position
from streamkernel.connectors.files.places import FilePlace
from streamkernel.connectors.memory import MemorySink
from streamkernel.daemon import cli
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.check import check
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.configurations import MODEL, lines_of
from tests.daemon.conftest import Home, Launcher, write_stream

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
    (position,) = (Position(*place) for place in several["source"]["positions"])
    place = FilePlace.of(position)
    assert place is not None
    assert place.order is not None
    assert place.at_end
    assert position.partition == PARTS - 1
    assert [Path(one).name.partition(".")[0] for one in place.order.files] == [
        f"part-{2 * n + 8}" for n in range(PARTS)
    ]
    run(prepare(parts.configure(source={**PATTERN, "path": "whole.csv"})), fresh=True)
    whole = parts.header()
    assert (published_entry(whole), whole["source"]["account"]) == (
        published_entry(several),
        several["source"]["account"],
    )
    assert [line["prediction"] for line in parts.lines("out/predictions.jsonl")] == [one["prediction"] for one in lines]


def test_check_and_evaluate(parts: Home) -> None:
    found = check(prepare(parts.config))
    assert found.good[0].startswith(
        "source: 5 csv files in/part-*; 3 of its first 49 records cannot be used; the first, at"
    )
    assert evaluate(prepare(parts.config), StopSignals()).view.account["consumed"] == PARTS * 80
    watched = prepare(parts.configure(source={**PATTERN, "path": "in", "watch": True}))
    assert check(watched).good[0].startswith("source: csv files in in, watched; 3 of its first 49 records")
    with pytest.raises(
        DaemonError, match=r"evaluate needs a source that ends, this one is watched: add --set source\.watch=false"
    ):
        evaluate(watched, StopSignals())
    (parts.folder / "in/part-9.csv").write_text("a,y\n1,no\n")
    (bad,) = check(prepare(parts.configure(source=PATTERN))).bad
    assert "part-9.csv: its columns are not those of the files before it, it lacks 'b', 'color'" in bad


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
        assert header["source"]["account"]["dead"] == before["source"]["account"]["dead"] - mended
        assert header["source"]["positions"] == before["source"]["positions"]


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
        ("path: [3]", "source.path: must be text"),
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
            assert line.startswith("predictions.path: must not be where source.path looks for files")


LOGISTIC: list[Any] = [{"river.linear_model.LogisticRegression": {}}]
COLUMNS = [f"measurement_{number}" for number in range(300)]
HEADER = ",".join([*COLUMNS, "y"]) + "\n"


def rows(first: int, count: int) -> str:
    return "".join(f"{number}{299 * ',0'},{number % 2}\n" for number in range(first, first + count))


@pytest.fixture
def wide(home: Home) -> Home:
    """A home with a source whose header is longer than what a file was once known by."""
    (home.folder / "stream.csv").write_text(HEADER + rows(0, 250))
    home.configure(model=LOGISTIC)
    return home


def test_a_replaced_file_of_the_same_header_is_refused(wide: Home, launcher: Launcher) -> None:
    assert launcher.call(wide, "run", "config.yaml", "--max-records", "100").returncode == 0
    before = wide.result()
    (wide.folder / "stream.csv").write_text(HEADER + rows(1000, 250))
    ended = launcher.call(wide, "run", "config.yaml")
    assert ended.returncode == 1
    assert "stream.csv: the file was replaced since the checkpoint" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert wide.result() == before


@pytest.mark.parametrize("learned", [0, 300])
def test_a_rotation_while_the_daemon_is_down(wide: Home, launcher: Launcher, learned: int) -> None:
    """Also of a file of which no record was learned yet."""
    log = wide.folder / "stream.csv"
    source = {"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}
    wide.configure(model=LOGISTIC, source=source)
    log.write_text(HEADER + rows(0, 300))
    assert launcher.call(wide, "run", "config.yaml", "--max-records", str(learned)).returncode == 0
    for part in (1, 2):
        for older in range(part, 0, -1):
            (log if older == 1 else Path(f"{log}.{older - 1}")).rename(f"{log}.{older}")
        log.write_text(HEADER + rows(300 * part, 300))
    assert launcher.call(wide, "run", "config.yaml", "--max-records", str(900 - learned)).returncode == 0
    account = wide.header()["source"]["account"]
    assert (account["consumed"], account["learned"], account["dead"]) == (900, 900, 0)


def test_a_last_line_that_has_grown_since_it_was_learned(home: Home, launcher: Launcher) -> None:
    stream = home.folder / "stream.csv"
    home.configure(source={"kind": "csv", "path": "stream.csv", "target": "y"}, model=LOGISTIC)
    stream.write_text("a,y\n" + "1,0\n2,1\n" * 5 + "0,1")
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    before = home.result()
    stream.write_text(stream.read_text() + "23.5\n")
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 1
    assert "the last line was learned without its line end, as '0,1', and is now '0,123.5'" in ended.stderr
    assert home.result() == before
    stream.write_text(stream.read_text()[:-5] + "\n0,1\n")
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    account = home.header()["source"]["account"]
    assert (account["consumed"], account["dead"], account["skipped"]) == (12, 0, 0)


class Stopped(Exception):
    """The power fails."""


def test_an_output_knows_the_records_of_a_file_that_grew(
    homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both lives of the daemon write the same origin beside the prediction of a record: a topic holds it once."""
    told: list[list[Any]] = []

    class Topic(MemorySink):
        """Notes where the records of its lines stand."""

        def write(self, lines: Any, positions: Any = ()) -> None:
            told[-1] += positions
            super().write(lines, positions)

    home = homes("one")
    monkeypatch.chdir(home.folder)
    monkeypatch.setattr("streamkernel.daemon.assembly.parts.make_sink", lambda *_: Topic())
    stream = home.folder / "stream.csv"
    config = home.configure(model=LOGISTIC, checkpoint={"directory": "out/state", "every_records": 10_000})
    stream.write_text("a,y\n" + "1,0\n" * 100)

    def power_fails(_: Any) -> None:
        raise Stopped

    told.append([])
    with monkeypatch.context() as patch:
        patch.setattr("streamkernel.daemon.run_state.coordinator.CheckpointCoordinator.finish", power_fails)
        with pytest.raises(Stopped):
            run(prepare(config), max_records=50)
    stream.write_text(stream.read_text() + "2,1\n" * 5000)
    told.append([])
    run(prepare(config))
    assert len(told[0]) == 50
    assert told[1][:50] == told[0]
