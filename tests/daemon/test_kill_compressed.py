"""Outputs in .gz and .zst: whatever kills the daemon, decompressed they hold what those of an undisturbed run do."""

from __future__ import annotations

import gzip
import os
import random
import signal
from pathlib import Path

import pytest
import zstandard

from tests.daemon.conftest import Home, Launcher, write_stream

RECORDS = 6000
POINTS = [
    "consumed",
    "consumed",
    "flushed",
    "checkpoint-writing",
    "checkpoint-before-rename",
    "checkpoint-after-rename",
]


def configured(folder: Path, kind: str, predictions: str, dead_letters: str) -> Home:
    folder.mkdir()
    home = Home(folder)
    write_stream(home.folder / "stream.csv", RECORDS)
    home.configure(
        model=[{"streamkernel.KernelClassifier": {"max_features": 64, "seed": 1}}],
        predictions={"kind": kind, "path": f"out/predictions{predictions}"},
        dead_letters={"kind": kind, "path": f"out/dead{dead_letters}"},
        checkpoint={"directory": "out/state", "every_records": 400},
    )
    return home


def text(path: Path) -> bytes:
    """Decompress with other programs' means than the daemon's own reader."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        with path.open("rb") as file:
            return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    return path.read_bytes()


def outputs(home: Home) -> dict[str, bytes]:
    return {path.name.split(".")[0]: text(path) for path in (home.folder / "out").iterdir() if path.is_file()}


def tear(home: Home, draw: random.Random) -> None:
    """Cut what no checkpoint covers at any byte, as the loss of power may."""
    for key, output in home.header()["outputs"].items():
        path, safe = home.folder / output["path"], output["mark"]["length"]
        assert path.stat().st_size >= safe, key
        os.truncate(path, draw.randint(safe, path.stat().st_size))


@pytest.mark.parametrize(
    ("kind", "suffixes"),
    [("jsonl", (".gz", ".zst")), pytest.param("csv", (".zst", ".gz"), marks=pytest.mark.long)],
)
def test_no_line_is_lost_or_there_twice(
    launcher: Launcher, tmp_path: Path, kind: str, suffixes: tuple[str, str]
) -> None:
    undisturbed = configured(tmp_path / "undisturbed", kind, "", "")
    assert launcher.call(undisturbed, "run", "config.yaml").returncode == 0
    home = configured(tmp_path / "killed", kind, *suffixes)
    draw = random.Random(6)
    left = 0
    for _ in range(12):
        point = draw.choice(POINTS)
        count = draw.randint(1, 700) if point == "consumed" else draw.randint(1, 2)
        done = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=f"{point}:{count}")
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert "may stand there twice" not in done.stderr
        if list((home.folder / "out/state").glob("*.skc")):
            marks = home.header()["outputs"].values()
            left += sum((home.folder / one["path"]).stat().st_size > one["mark"]["length"] for one in marks)
            tear(home, draw)
    assert left > 3  # what had to be cut off
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    assert outputs(home) == outputs(undisturbed)
    assert home.header()["account"] == undisturbed.header()["account"]
