"""`--fresh` that cannot go on tells so before anything is set aside."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon.runtime import run
from streamkernel.daemon.settings.plan import prepare
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


def test_a_port_that_is_taken(here: Home, launcher: Launcher) -> None:
    run(prepare(here.config))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        here.configure(metrics={"port": taken.getsockname()[1]})
        before = contents(here.folder)
        done = launcher.call(here, "run", "config.yaml", "--fresh")
    assert done.returncode == 1
    assert contents(here.folder) == before
