"""`--fresh` that cannot go on tells so before anything is set aside."""

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
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
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
