"""What a daemon goes on from, and `--fresh` that cannot go on: it says so before anything is set aside."""

from __future__ import annotations

import contextlib
import fcntl
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.ports import SinkError
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.check import check
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher, write_stream


class TestWhatItGoesOnFrom:
    """A checkpoint that does not fit is refused, with the difference; what does not touch the model is taken."""

    @pytest.mark.parametrize(
        ("sections", "difference"),
        [
            (
                {"model": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 512}}]},
                "model[0].max_features: checkpoint has 256, configuration says 512",
            ),
            (
                {"model": ["river.linear_model.LogisticRegression"]},
                "the checkpoint holds another model than the configuration",
            ),
            (
                {"source": {"kind": "csv", "path": "stream.csv", "target": "colour"}},
                "source.target is 'y' in the checkpoint and 'colour' in the configuration",
            ),
            (
                {"source": {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"}},
                "source.target_type is 'str' in the checkpoint and 'bool' in the configuration",
            ),
            (
                {"source": {"kind": "river", "dataset": "Phishing"}},
                "source.kind is 'csv' in the checkpoint and 'river' in the configuration",
            ),
        ],
    )
    def test_another_model_or_source_is_refused(self, trained: Home, sections: dict[str, Any], difference: str) -> None:
        before = trained.result()
        (bad,) = check(prepare(trained.configure(**sections))).bad
        with pytest.raises(UnfitError) as caught:
            run(prepare(trained.config))
        assert difference in str(caught.value)
        assert difference in bad
        assert "\n" not in str(caught.value)
        assert trained.result() == before

    def test_an_older_state_is_that_of_the_checkpoints_that_stay(self, here: Home) -> None:
        run(prepare(here.config))
        whole = here.result()
        *_, newest = sorted((here.folder / "out/state").glob("*.skc"))
        newest.unlink()
        assert here.header()["account"]["consumed"] < 400
        run(prepare(here.config))
        assert here.result() == whole

    def test_a_default_that_is_written_out_is_no_difference(self, trained: Home) -> None:
        source = {"kind": "csv", "path": "stream.csv", "target": "y", "delimiter": ",", "encoding": "utf-8"}
        model = [{"streamkernel.KernelClassifier": {"max_features": 256, "seed": 1, "block_size": 64}}]
        run(prepare(trained.configure(source=source, model=model)))
        assert trained.header()["account"]["consumed"] == 1000

    @pytest.mark.usefixtures("processes")
    def test_other_ports_outputs_and_intervals_are_taken(self, trained: Home) -> None:
        predicted = trained.header()["account"]["predicted"]
        config = trained.configure(
            predictions={"kind": "csv", "path": "out/other.csv"},
            dead_letters={"kind": "none"},
            checkpoint={"directory": "out/state", "every_records": 77, "every_seconds": 5, "keep": 1},
            metrics={"port": 0},
            log={"level": "debug", "format": "json"},
        )
        run(prepare(config))
        header = trained.header()
        assert header["account"]["consumed"] == 1000
        assert len(trained.lines("out/predictions.jsonl")) == predicted  # the old file is left as it was
        rows = (trained.folder / "out/other.csv").read_text().splitlines()
        assert rows[0] == "position,prediction,target,probabilities"
        assert len(rows) == 1 + header["account"]["predicted"] - predicted

    def test_a_file_that_moved_is_taken_and_one_that_was_replaced_is_refused(self, trained: Home) -> None:
        (trained.folder / "stream.csv").rename(trained.folder / "moved.csv")
        source = {"kind": "csv", "path": "moved.csv", "target": "y"}
        run(prepare(trained.configure(source=source)), max_records=100)
        assert trained.header()["account"]["consumed"] == 700
        write_stream(trained.folder / "moved.csv", 400, seed=1)
        with pytest.raises(Exception, match=r"moved\.csv: "):
            run(prepare(trained.config))
        assert trained.header()["account"]["consumed"] == 700

    def with_versions(self, here: Home, **versions: str) -> None:
        checkpoint = read(sorted((here.folder / "out/state").glob("*.skc"))[-1])
        store = CheckpointStore(here.folder / "out/state")
        store.lock()
        header = {**checkpoint.header, "versions": {**checkpoint.header["versions"], **versions}}
        store.write(header, checkpoint.payload)
        store.close()

    def test_another_minor_version_is_loaded_with_a_warning(
        self, trained: Home, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.with_versions(trained, river="0.1.7", streamkernel="0.999.0")
        run(prepare(trained.config), max_records=100)
        assert "written with river 0.1.7" in caplog.text
        assert "written with streamkernel 0.999.0" in caplog.text
        assert trained.header()["account"]["consumed"] == 700

    @pytest.mark.parametrize("library", ["river", "streamkernel"])
    def test_another_major_version_is_refused(self, trained: Home, library: str) -> None:
        self.with_versions(trained, **{library: "77.1.0"})
        with pytest.raises(
            CheckpointError, match=rf"written with {library} 77\.1\.0.*install {library} 77\.1\.0, or start"
        ):
            run(prepare(trained.config))

    def test_what_the_environment_gave_is_not_kept(self, here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STREAM_FILE", "stream.csv")
        monkeypatch.setenv("OUT", "secret-place")
        source = {"kind": "csv", "path": "${STREAM_FILE}", "target": "y"}
        run(prepare(here.configure(source=source, predictions={"kind": "jsonl", "path": "${OUT}/p.jsonl"})))
        assert (here.folder / "secret-place/p.jsonl").exists()
        for path in (here.folder / "out/state").glob("*.skc"):
            assert b"secret-place" not in path.read_bytes()


def contents(folder: Path) -> dict[str, bytes]:
    """All there is, but for the number of the process that was there last."""
    return {
        str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock"
    }


def another_output(home: Home) -> dict[str, Any]:
    (home.folder / "mine.jsonl").write_text("{}\n")
    return {"dead_letters": {"kind": "jsonl", "path": "mine.jsonl"}}


def no_source(home: Home) -> dict[str, Any]:
    (home.folder / "stream.csv").rename(home.folder / "moved.csv")
    return {}


def no_model(_: Home) -> dict[str, Any]:
    return {"model": ["river.feature_extraction.RandomTreesEmbedding", "river.linear_model.LogisticRegression"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (another_output, "mine.jsonl: holds 3 bytes that no checkpoint of this daemon knows, and was not touched"),
        (no_source, "stream.csv: "),
        (no_model, "checkpoint"),
    ],
)
def test_what_a_run_would_end_with(
    here: Home, launcher: Launcher, change: Callable[[Home], dict[str, Any]], said: str
) -> None:
    run(prepare(here.config))
    sections = change(here)
    here.configure(**sections)
    before = contents(here.folder)
    done = launcher.call(here, "run", "config.yaml", "--fresh")
    assert done.returncode == 1
    assert said in done.stderr
    assert contents(here.folder).items() >= before.items()
    assert not list(here.folder.rglob("*.old"))


def taken_place(home: Home) -> Path:
    path = home.folder / "dead.jsonl.old"
    path.write_text("mine\n")
    return path


def foreign_lines(home: Home) -> Path:
    path = home.folder / "out" / "predictions.jsonl"
    path.unlink()
    path.write_text("mine\n")
    return path


def a_directory(home: Home) -> Path:
    path = home.folder / "dead.jsonl"
    path.unlink()
    path.mkdir()
    return path


def another_writer(home: Home) -> Path:
    return home.folder / "dead.jsonl"


def another_writer_elsewhere(home: Home) -> Path:
    path = home.folder / "elsewhere.jsonl"
    path.touch()
    home.configure(dead_letters={"kind": "jsonl", "path": path.name})
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (taken_place, "dead.jsonl: cannot be set aside as dead.jsonl.old, which is another file"),
        (foreign_lines, "predictions.jsonl: holds 5 bytes that no checkpoint of this daemon knows"),
        (a_directory, "dead.jsonl: cannot be "),
        (another_writer, "dead.jsonl: another output writes to it"),
        (another_writer_elsewhere, "elsewhere.jsonl: another output writes to it"),
    ],
)
def test_an_output_that_refuses(here: Home, change: Callable[[Home], Path], said: str) -> None:
    here.configure(dead_letters={"kind": "jsonl", "path": "dead.jsonl"})
    run(prepare(here.config))
    path = change(here)
    before = contents(here.folder)
    with contextlib.ExitStack() as stack:
        if change in (another_writer, another_writer_elsewhere):
            fcntl.flock(stack.enter_context(path.open("rb")), fcntl.LOCK_EX)
        with pytest.raises(SinkError, match=re.escape(said)):
            run(prepare(here.config), fresh=True)
    assert contents(here.folder) == before


def test_a_port_that_is_taken(here: Home, launcher: Launcher) -> None:
    run(prepare(here.config))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        here.configure(metrics={"port": port})
        before = contents(here.folder)
        done = launcher.call(here, "run", "config.yaml", "--fresh")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    why = f"cannot serve metrics on 127.0.0.1:{port}: Address already in use; set metrics.port to another one"
    assert why in line
    assert contents(here.folder) == before
