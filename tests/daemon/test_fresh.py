"""`--fresh` that cannot go on tells so before anything is set aside."""

from __future__ import annotations

import contextlib
import fcntl
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.ports import SinkError
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.checkpoints.file import encode_head, read, write_to
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home, Launcher


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


@pytest.mark.parametrize("sections", [{}, {"run": 5}, {"run": {"mode": []}, "outputs": {"predictions": {"mark": 3}}}])
def test_sound_checkpoints_with_a_header_of_something_else_are_set_aside(here: Home, sections: dict[str, Any]) -> None:
    run(prepare(here.config))
    for path in (here.folder / "out/state").glob("*.skc"):
        number = read(path).number
        with path.open("wb") as file:
            write_to(file, encode_head(number, sections, 0), b"")
    run(prepare(here.config), fresh=True)
    assert (here.folder / "out/predictions.jsonl.old").exists()


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


PARQUET = {"kind": "parquet", "path": "out/parts", "classes": ["yes"]}


@pytest.mark.parametrize("way_on", ["--fresh", "back"])
@pytest.mark.parametrize("predictions", [None, PARQUET], ids=["file", "folder"])
def test_a_kill_between_outputs_and_checkpoints_is_told_with_the_way_on(
    here: Home, monkeypatch: pytest.MonkeyPatch, predictions: dict[str, Any] | None, way_on: str
) -> None:
    if predictions is not None:
        here.configure(predictions=predictions)
    run(prepare(here.config))
    (path,) = [one for one in (here.folder / "out").iterdir() if one.name in ("predictions.jsonl", "parts")]
    old = path.with_name(f"{path.name}.old")
    before = everything(path)

    def killed(_: CheckpointStore) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(CheckpointStore, "clear", killed)
        with pytest.raises(KeyboardInterrupt):
            run(prepare(here.config), fresh=True)
    for _ in range(2):
        said = (
            f"recorded at the checkpoint: a start with --fresh that was killed renamed it to {old.name}: start with "
            "--fresh again to start over, or rename it back to continue"
        )
        with pytest.raises(SinkError, match=re.escape(said)):
            run(prepare(here.config))
    if way_on == "back":
        for one in (here.folder / "out").glob("*.old"):
            one.rename(one.with_suffix(""))
    run(prepare(here.config), fresh=way_on == "--fresh")
    assert everything(path) == before
    assert old.exists() == (way_on == "--fresh")


def everything(path: Path) -> list[bytes]:
    """The contents of a file, or of all in a folder."""
    return [one.read_bytes() for one in (sorted(path.iterdir()) if path.is_dir() else [path])]
