"""An output destroys no file that no checkpoint knows, nor one that is read; one that is blocked loses no line."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from connectors.ports import SinkError
from streamkernel.daemon.check import check
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher
from tests.daemon.outputs import SOURCE, configured, offsets, offsets_of, predictions
from tests.kills.simulated import killed, runs


@pytest.fixture
def home(home: Home) -> Home:
    """A home with a short stream and a model that starts at once, in the working directory."""
    text = "".join(f"{number % 7},{number % 3},{'yes' if number % 2 else 'no'}\n" for number in range(400))
    (home.folder / "stream.csv").write_text("a,b,y\n" + text)
    configured(home)
    return home


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

    def test_a_daemon_without_checkpoints(self, home: Home) -> None:
        configured(home, checkpoint=None)
        run(prepare(home.config))
        self.refused(home)
        configured(home, checkpoint=None, predictions=predictions(existing="replace"))
        for _ in range(2):
            run(prepare(home.config))
            assert len(offsets(home)) == 400

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
        learnt = plan.source.poll

        def poll(max_records: int, timeout: float) -> Any:
            if home.header()["account"]["consumed"] == 200 and not away.exists():
                meddle(path, away, done)
            return learnt(max_records, timeout)

        plan.source.poll = poll  # type: ignore[method-assign]
        size = "where" if done in ("cut", "written to") else "was renamed, removed or replaced"
        with pytest.raises(SinkError, match=rf"other\.jsonl{suffix}: .*{size}"):
            run(plan)
        assert home.header()["account"]["consumed"] == 200
        if done in ("renamed", "replaced"):
            away.rename(path)
        if done in ("renamed", "replaced", "written to"):
            run(prepare(home.config))
            assert home.header()["account"]["consumed"] == 400
            text = gzip.decompress(path.read_bytes()) if suffix else path.read_bytes()
            assert text.count(b"\n") == 400
        else:
            said = "there is no such file" if done == "removed" else "its bytes before byte"
            with pytest.raises(SinkError, match=rf"other\.jsonl{suffix}: {said}"):
                run(prepare(home.config))

    def test_a_second_daemon_with_a_state_of_its_own(self, home: Home, launcher: Launcher) -> None:
        configured(home, source={**SOURCE, "follow": True})
        first = launcher.start(home, "run", "config.yaml")
        first.wait_for("reading .* from record 1 on")
        configured(home, checkpoint={"directory": "second"}, predictions=predictions(existing="replace"))
        ended = launcher.call(home, "run", "config.yaml")
        assert ended.returncode == 1
        assert f"out/predictions.jsonl: another output writes to it (process {first.pid})" in ended.stderr
        first.signal(signal.SIGTERM)
        assert first.wait().returncode == 0


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

    def test_a_kill_behind_an_output_that_was_changed(self, home: Home) -> None:
        run(prepare(home.config), max_records=150)
        configured(home, predictions={"kind": "csv", "path": "out/other.csv"})
        killed(home, "consumed:20")
        run(prepare(home.config))
        assert len((home.folder / "out/other.csv").read_text().splitlines()) == 1 + 250

    def test_a_copy_of_everything_goes_on(self, home: Home, tmp_path_factory: Any) -> None:
        killed(home, "consumed:350")
        copy = Home(tmp_path_factory.mktemp("machine") / "home")
        shutil.copytree(home.folder, copy.folder)
        assert runs(copy) == 0
        assert len(copy.lines("out/predictions.jsonl")) == 400


class TestFresh:
    """--fresh puts the lines of the run it ends where its checkpoints go."""

    def test_the_files_of_the_last_run_are_set_aside(self, home: Home) -> None:
        counts = []
        for records in (400, 100, 0, 200):
            run(prepare(home.config), fresh=True, max_records=records)
            counts.append(len(offsets(home)))
            if len(counts) > 1:
                assert len(offsets(home, "out/predictions.jsonl.old")) == counts[-2]
        assert counts == [400, 100, 0, 200]

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
        assert len(offsets(home)) == home.header()["account"]["predicted"] == 400
        mine.unlink()
        run(prepare(home.config), fresh=True, max_records=100)
        assert len(offsets(home)) == 100


class TestOneFileUnderTwoNames:
    """What is read is never written to, by whatever name: status 2, before anything is touched."""

    @pytest.mark.parametrize("key", ["predictions", "dead_letters"])
    @pytest.mark.parametrize("name", ["./stream.csv", "out/../stream.csv", "symbolic", "hard", "through/stream.csv"])
    def test_the_source(self, home: Home, key: str, name: str) -> None:
        self.link(home)
        configured(home, **{key: predictions(name, existing="replace")})
        with pytest.raises(ConfigError) as caught:
            prepare(home.config)
        assert caught.value.lines == [f"{key}.path: must differ from source.path, they are the same file"]

    def test_the_status_is_2_and_nothing_was_touched(self, home: Home, launcher: Launcher) -> None:
        self.link(home)
        before = (home.folder / "stream.csv").read_bytes()
        configured(home, predictions=predictions("hard", existing="replace"))
        for command in (["check", "config.yaml"], ["run", "config.yaml", "--fresh"]):
            ended = launcher.call(home, *command)
            assert ended.returncode == 2
            assert ended.stderr == "predictions.path: must differ from source.path, they are the same file\n"
        assert (home.folder / "stream.csv").read_bytes() == before
        assert not (home.folder / "out/state").exists()

    def link(self, home: Home) -> None:
        (home.folder / "out").mkdir()
        (home.folder / "symbolic").symlink_to("stream.csv")
        (home.folder / "hard").hardlink_to("stream.csv")
        (home.folder / "through").symlink_to(".")

    @pytest.mark.parametrize(
        ("sections", "said"),
        [
            (
                {"dead_letters": predictions("./out/predictions.jsonl")},
                "dead_letters.path: must differ from predictions",
            ),
            (
                {"predictions": predictions("config.yaml")},
                "predictions.path: must differ from the configuration itself",
            ),
            ({"predictions": predictions("out/state")}, "predictions.path: must differ from checkpoint.directory"),
            ({"predictions": predictions("./out/state/lock")}, "predictions.path: must not be a file that the daemon"),
            ({"predictions": predictions("out/state/order.log")}, "predictions.path: must not be a file that the"),
            ({"predictions": predictions("link-to-lock")}, "predictions.path: must not be a file that the daemon"),
            (
                {"metrics": {"tls": {"certificate": "c.pem", "key": "k.pem"}}, "predictions": predictions("./k.pem")},
                "predictions.path: must differ from metrics.tls.key",
            ),
            (
                {
                    "labels": {"source": {**SOURCE, "path": "late.csv"}, "key": "id"},
                    "predictions": predictions("late.csv"),
                },
                "predictions.path: must differ from labels.source.path",
            ),
            (
                {
                    "source": {**SOURCE, "path": "to-come.csv", "follow": True},
                    "predictions": predictions("link-to-come"),
                },
                "predictions.path: must differ from source.path",
            ),
        ],
    )
    def test_all_else_that_is_read(self, home: Home, sections: dict[str, Any], said: str) -> None:
        (home.folder / "link-to-come").symlink_to("to-come.csv")
        state = home.folder / "out/state"
        state.mkdir(parents=True)
        (state / "lock").touch()
        (home.folder / "link-to-lock").hardlink_to(state / "lock")
        configured(home, **sections)
        with pytest.raises(ConfigError) as caught:
            prepare(home.config)
        assert [line for line in caught.value.lines if line.startswith(said)], caught.value.lines

    @pytest.mark.parametrize("name", ["stream.csv.1", "stream.csv-20240131.gz", "link", "through/stream.csv.12"])
    def test_a_rotated_part_of_a_followed_source(self, home: Home, name: str) -> None:
        """It would be read as records, and the next rotation would rename something over it."""
        (home.folder / "link").symlink_to("stream.csv.2")
        (home.folder / "through").symlink_to(".")
        configured(home, source={**SOURCE, "follow": True}, dead_letters=predictions(name))
        said = "dead_letters.path: must not be named like a rotated part of source.path, it would be read as one"
        with pytest.raises(ConfigError) as caught:
            prepare(home.config)
        assert caught.value.lines == [said]
        configured(home, dead_letters=predictions(name))
        prepare(home.config)

    def test_standard_input_and_output(self, home: Home) -> None:
        for source, output, command in (
            ("-", "stream.csv", "run config.yaml < stream.csv"),
            ("stream.csv", "-", "run config.yaml >> stream.csv"),
        ):
            configured(home, source={**SOURCE, "path": source}, predictions=predictions(output, existing="replace"))
            before = (home.folder / "stream.csv").read_bytes()
            reading, writing = (
                (os.open("stream.csv", os.O_RDONLY) if source == "-" else os.open(os.devnull, os.O_RDONLY)),
                os.open("stream.csv" if output == "-" else os.devnull, os.O_WRONLY | os.O_APPEND),
            )
            saved = os.dup(0), os.dup(1)
            os.dup2(reading, 0)
            os.dup2(writing, 1)
            try:
                with pytest.raises(ConfigError, match=r"predictions\.path: must differ from source\.path"):
                    prepare(home.config)
            finally:
                for number, descriptor in enumerate(saved):
                    os.dup2(descriptor, number)
                for descriptor in (reading, writing, *saved):
                    os.close(descriptor)
            assert (home.folder / "stream.csv").read_bytes() == before, command

    def test_devices_may_be_shared(self, home: Home) -> None:
        configured(home, predictions=predictions("/dev/null"), dead_letters=predictions("/dev/null"))
        for _ in range(2):
            run(prepare(home.config))
        assert home.header()["account"]["consumed"] == 400


class TestABlockedOutput:
    """What waits for an output is bounded by bytes, nothing of it is lost, and a stop is obeyed."""

    @pytest.mark.parametrize(
        ("key", "path", "records", "length"),
        [
            ("predictions", "/dev/full", 14_000, 1),
            ("dead_letters", "/dev/full", 100, 100_000),
            ("dead_letters", "pipe", 100, 100_000),
        ],
    )
    def test_the_daemon_stops_reading(
        self, home: Home, launcher: Launcher, key: str, path: str, records: int, length: int
    ) -> None:
        os.mkfifo(home.folder / "pipe")
        idle = os.open(home.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        bad = [] if key == "dead_letters" else 0
        with (home.folder / "stream.jsonl").open("w") as file:
            for number in range(records):
                file.write(json.dumps({"a": bad, "b": length * "x", "y": str(number % 2)}) + "\n")

        def writing_to(path: str) -> dict[str, Any]:
            more = {"max_rate": 1} if key == "dead_letters" else {}
            return {
                "source": {"kind": "jsonl", "path": "stream.jsonl", "target": "y"},
                "model": [{"river.dummy.PriorClassifier": {}}],
                "limits": {"max_waiting_bytes": 2**20},
                "checkpoint": {"directory": "out/state"},
                key: predictions(path, **more),
            }

        configured(home, **writing_to(path))
        running = launcher.start(home, "run", "config.yaml")
        waiting = running.wait_for(r"([\d,]+) bytes of lines wait for an output: no more records are read")
        assert 2**20 <= int(waiting[1].replace(",", "")) < 2**24  # a chunk more at the most
        running.signal(signal.SIGTERM)
        assert running.wait().returncode == 1
        os.close(idle)
        assert running.log.count("no more records are read") == 1
        assert "the last checkpoint could not be written" in running.log
        assert home.header()["account"]["consumed"] == 0
        configured(home, **writing_to("out/lines.jsonl"))
        run(prepare(home.config))
        assert len(home.lines("out/lines.jsonl")) == records
