"""A simulated kill leaves what a SIGKILL leaves: the same files to the byte, no lock, and nothing that comes later."""

from __future__ import annotations

import json
import re
import signal
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.daemon.conftest import Home, Launcher
from tests.daemon.launcher import hold_clocks
from tests.kills.runs import REPLAY, Features, Run
from tests.kills.simulated import killed

CASES = [
    (
        Features("growing"),
        ["consumed:250", "mid-batch:3", "flushed:1", "checkpoint-before-rename:1", "checkpoint-writing:1"],
    ),
    (Features("adaptive", output="csv", dead="csv", in_time=True), ["published:120", "checkpoint-after-rename:2"]),
    (Features("River's", output="jsonl.gz", dead="jsonl.zst"), ["consumed:230", "flushed:2"]),
    (Features("novelty", "several", "jsonl.zst"), ["consumed:170", "checkpoint-writing:1"]),
    (Features("growing", output="parquet", include=True), ["consumed:250", "flushed:1", "checkpoint-before-rename:1"]),
    (Features("growing", "late labels as jsonl"), ["consumed:333", "mid-batch:4", "checkpoint-writing:2"]),
    (Features("several", "late labels as csv"), ["mid-batch:3", "checkpoint-after-rename:2"]),
    (Features("refitted", warm=True), ["consumed:60", "seam:1", "refitted:1", "seam:2", "consumed:90"]),
    (Features("numbers", "followed"), ["consumed:70", "mid-batch:2"]),
    (Features("Gaussian process", "watched"), ["consumed:130", "flushed:1", "committing:1"]),
    (Features("predict", include=True), ["consumed:150", "checkpoint-before-rename:2"]),
]


def left(home: Home) -> dict[str, object]:
    """Return every file below a folder, but for what holds a process, a time or the number of a file."""
    paths = (path for path in sorted(home.folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(home.folder)): _content(path) for path in paths}


def _content(path: Path) -> object:
    data = path.read_bytes()
    if path.name == "lock":
        return re.sub(rb"^\d+", b"", data)
    if ".skc" not in path.name:
        return data
    start = struct.Struct("<8sII")
    end = start.size + start.unpack_from(data)[2]
    changing = rb'"(written|clock)":[\d.e+-]+|"(file|folder)":\[\d+,\d+\]|"inode":\d+'
    head = re.sub(changing, b"", data[start.size : end])
    payload = json.loads(data[start.size : end])["payload_length"]
    # Behind the payload are its length and the hash of all.
    return head, data[end : end + payload], len(data) - end


def both(homes: Sequence[Run], where: str, launcher: Launcher, *command: str) -> None:
    """Kill one in this process and one by SIGKILL, and compare what they leave."""
    simulated, real = homes
    killed(simulated.home, where, *(command or simulated.command()))
    ended = launcher.call(real.home, *(command or real.command()), STREAMKERNEL_CRASH=where, HOLD_CLOCKS="1")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    ours, theirs = left(simulated.home), left(real.home)
    assert ours.keys() == theirs.keys()
    for path, content in ours.items():
        assert content == theirs[path], f"{path} after {where}"


def pair(folder: Path, features: Features) -> list[Run]:
    """Make two homes of one run that nothing but records moves."""
    trained = None
    if features.model == "predict":
        run = Run(folder / "trained", Features("growing"))
        run.finish()
        trained = run.home.folder / "out/state"
    homes = [Run(folder / name, features, trained) for name in ("simulated", "real")]
    for run in homes:
        text = run.home.config.read_text().replace("  every_records", "  every_seconds: 1.0e+6\n  every_records")
        for name in ("predictions", "dead") if not features.in_time and features.output != "parquet" else ("dead",):
            text = re.sub(rf"(  path: out/{name}.*\n)", r"\1  flush_seconds: 1.0e+6\n", text)
        run.home.config.write_text(text)
    return homes


@pytest.mark.parametrize(("features", "places"), CASES, ids=[case.model for case, _ in CASES])
def test_the_same_files_are_left(
    tmp_path: Path, launcher: Launcher, monkeypatch: pytest.MonkeyPatch, features: Features, places: list[str]
) -> None:
    hold_clocks(monkeypatch.setattr)  # points are counted by the chunk
    homes = pair(tmp_path, features)
    for where in places:
        both(homes, where, launcher)
    for run in homes:
        run.finish()
    if [run.mend() and features.source == "file" for run in homes] == [True, True]:
        for where in ("mid-batch:1", "flushed:1", "checkpoint-before-rename:1", "checkpoint-after-rename:1"):
            both(homes, where, launcher, *REPLAY)
