"""An output never destroys a file that no checkpoint knows, whatever was done to it since, also by --fresh."""

from __future__ import annotations

import gzip
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.ports import SinkError
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.check import check
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home
from tests.daemon.outputs import configured, offsets, offsets_of, predictions, with_short_stream
from tests.kills.simulated import killed, runs


@pytest.fixture
def home(home: Home) -> Home:
    return with_short_stream(home)


def meddle(path: Path, away: Path, done: str) -> None:
    """Do to an open output what a careless operator does."""
    away.write_bytes(b"")
    if done == "removed":
        path.unlink()
    elif done in ("renamed", "replaced"):
        path.rename(away)
        if done == "replaced":
            path.write_bytes(b"mine\n")
    elif done == "cut":
        os.truncate(path, max(0, path.stat().st_size - 5))
    else:
        with path.open("ab") as file:
            file.write(b"mine\n")


def test_lines_behind_the_checkpoint_in_an_output_that_is_left_are_told(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = offsets_of(home)
    killed(home, "flushed:3")
    old = home.folder / "out/predictions.jsonl"
    assert len(offsets(home)) == 200
    configured(home, predictions=predictions("out/other.jsonl"))
    assert runs(home) == 0
    told = re.search(
        r"out/predictions\.jsonl: is not an output .* come again: cut it to (\d+) bytes", capsys.readouterr().err
    )
    assert told is not None
    os.truncate(old, int(told[1]))
    assert offsets(home) + offsets(home, "out/other.jsonl") == whole
    configured(home, predictions=None)
    assert runs(home) == 0
    assert "is not an output" not in capsys.readouterr().err


class TestNoCheckpointKnowsTheFile:
    """What a run did not write, it does not touch unless told to."""

    def refused(self, home: Home, fresh: bool = False) -> None:
        file = home.folder / "out/predictions.jsonl"
        before = file.read_bytes()
        said = r"out/predictions\.jsonl: holds [\d,]+ bytes that no checkpoint .* existing: append or existing: replace"
        with pytest.raises(SinkError, match=said):
            run(prepare(home.config), fresh=fresh)
        (bad,) = check(prepare(home.config)).bad
        assert re.match(said, bad)
        assert file.read_bytes() == before

    def test_a_lost_checkpoint_directory(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        run(prepare(home.config))
        shutil.rmtree(home.folder / "out/state")
        self.refused(home)
        self.refused(home, fresh=True)
        capsys.readouterr()
        assert runs(home) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
        whole = offsets(home)
        configured(home, predictions=predictions(existing="append"))
        run(prepare(home.config))
        assert offsets(home) == whole + whole
        shutil.rmtree(home.folder / "out/state")
        configured(home, predictions=predictions(existing="replace"))
        run(prepare(home.config))
        assert offsets(home) == whole

    def test_a_variable_or_a_working_directory_that_changed(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        def go_on(out: str, records: int | None = None) -> None:
            monkeypatch.setenv("OUT", out)
            run(prepare(home.config), max_records=records)

        configured(home, predictions=predictions("${OUT}/p.jsonl"), dead_letters={"kind": "none"})
        go_on("first", 0)
        (home.folder / "second").mkdir()
        other = home.folder / "second/p.jsonl"
        other.write_text('{"somebody": "else"}\n' * 5000)
        # At record 0 nothing was written that could be compared, later it can.
        with pytest.raises(SinkError, match="no checkpoint of this daemon knows"):
            go_on("second")
        go_on("first", 300)
        with pytest.raises(SinkError, match="first bytes are not those recorded"):
            go_on("second")
        assert other.read_text() == '{"somebody": "else"}\n' * 5000
        other.unlink()
        with pytest.raises(SinkError, match=r"second/p\.jsonl: there is no such file, and "):
            go_on("second")
        assert not other.exists()
        go_on("first")
        assert len(offsets(home, "first/p.jsonl")) == 400

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    @pytest.mark.parametrize("done", ["removed", "renamed", "replaced", "cut", "written to"])
    def test_what_others_do_to_it_while_it_is_written(self, home: Home, suffix: str, done: str) -> None:
        """No checkpoint is written that speaks of lines which are not there; one goes on where they still are."""
        path, away = home.folder / f"out/other.jsonl{suffix}", home.folder / "away"
        configured(home, predictions=predictions(str(path)))
        plan = prepare(home.config)
        learned = plan.source.poll

        def poll(max_records: int, timeout: float) -> Any:
            if home.header()["source"]["account"]["consumed"] == 200 and not away.exists():
                meddle(path, away, done)
            return learned(max_records, timeout)

        plan.source.poll = poll  # type: ignore[method-assign]
        size = "where" if done in ("cut", "written to") else "was renamed, removed or replaced"
        with pytest.raises(SinkError, match=rf"other\.jsonl{suffix}: .*{size}"):
            run(plan)
        assert home.header()["source"]["account"]["consumed"] == 200
        if done in ("renamed", "replaced"):
            away.rename(path)
        if done in ("renamed", "replaced", "written to"):
            run(prepare(home.config))
            assert home.header()["source"]["account"]["consumed"] == 400
            text = gzip.decompress(path.read_bytes()) if suffix else path.read_bytes()
            assert text.count(b"\n") == 400
        else:
            said = "there is no such file" if done == "removed" else "its bytes before byte"
            with pytest.raises(SinkError, match=rf"other\.jsonl{suffix}: {said}"):
                run(prepare(home.config))


class TestKills:
    """After a kill the daemon knows its own files, however early it came and whatever was changed before."""

    @pytest.mark.parametrize(("existing", "count"), [("refuse", 1), ("append", 50), ("append", 350), ("replace", 50)])
    def test_a_kill_leaves_every_line_once(self, home: Home, existing: str, count: int) -> None:
        (home.folder / "out").mkdir()
        kept = {"append": [{"mine": 1}]}.get(existing, [])
        if existing != "refuse":
            (home.folder / "out/predictions.jsonl").write_text('{"mine": 1}')
        configured(home, predictions=predictions(existing=existing))
        killed(home, f"consumed:{count}")
        run(prepare(home.config))
        lines = home.lines("out/predictions.jsonl")
        assert lines[: len(kept)] == kept
        assert [line["position"]["offset"] for line in lines[len(kept) :]] == sorted(set(offsets_of(home)))

    def test_a_copy_of_everything_goes_on(self, home: Home, tmp_path_factory: Any) -> None:
        killed(home, "consumed:350")
        copy = Home(tmp_path_factory.mktemp("machine") / "home")
        shutil.copytree(home.folder, copy.folder)
        assert runs(copy) == 0
        assert len(copy.lines("out/predictions.jsonl")) == 400


class TestFresh:
    """--fresh puts the lines of the run it ends where its checkpoints go."""

    def test_the_files_of_the_last_run_are_set_aside(self, home: Home, caplog: pytest.LogCaptureFixture) -> None:
        counts = []
        caplog.set_level(logging.INFO)
        for records in (400, 100, 0, 200):
            caplog.clear()
            run(prepare(home.config), fresh=True, max_records=records)
            counts.append(len(offsets(home)))
            if len(counts) > 1:
                assert len(offsets(home, "out/predictions.jsonl.old")) == counts[-2]
        assert counts == [400, 100, 0, 200]
        (told,) = [one for one in caplog.messages if one.startswith("--fresh: ")]
        assert "out/predictions.jsonl to predictions.jsonl.old (removed: the one before), renamed " in told
        assert told.endswith("out/state to names that end in .old (removed: 2 that had them)")

    def test_a_kill_after_any_step_of_it_is_no_dead_end(self, home: Home) -> None:
        for point in ("consumed:1", "consumed:250", "checkpoint-writing:1", "checkpoint-after-rename:1", "flushed:1"):
            killed(home, point, "run", "config.yaml", "--fresh")
        run(prepare(home.config), fresh=True)
        assert len(offsets(home)) == 400

    def test_a_damaged_checkpoint_is_no_dead_end(self, home: Home) -> None:
        run(prepare(home.config))
        for path in (home.folder / "out/state").glob("*.skc"):
            path.write_bytes(path.read_bytes()[:-1])
        run(prepare(home.config), fresh=True, max_records=100)
        assert (len(offsets(home)), len(offsets(home, "out/predictions.jsonl.old"))) == (100, 400)

    def test_files_of_somebody_else_stay(self, home: Home) -> None:
        run(prepare(home.config))
        mine = home.folder / "out/predictions.jsonl.old"
        mine.write_text("mine\n")
        with pytest.raises(SinkError, match=r"set aside as predictions\.jsonl\.old, which is another file"):
            run(prepare(home.config), fresh=True)
        assert mine.read_text() == "mine\n"
        assert len(offsets(home)) == home.header()["source"]["account"]["predicted"] == 400
        mine.unlink()
        run(prepare(home.config), fresh=True, max_records=100)
        assert len(offsets(home)) == 100
