"""A start that learns nothing takes no older checkpoint away, however often it is tried."""

from __future__ import annotations

import shutil

from streamkernel.daemon.checkpoints.file import read
from tests.daemon.conftest import Home, write_stream
from tests.kills.simulated import killed, runs


def reached(home: Home) -> list[int]:
    """How far each checkpoint reaches, the oldest first."""
    return [
        read(path).header["account"]["consumed"]
        for path in sorted((home.folder / "out/state").glob("checkpoint-*.skc"))
    ]


def test_starts_that_die_leave_the_older_checkpoints(home: Home) -> None:
    write_stream(home.folder / "stream.csv", 600)
    home.configure(checkpoint={"directory": "out/state", "every_records": 100, "keep": 3})
    assert runs(home, "run", "config.yaml", "--max-records", "240") == 0
    assert reached(home) == [100, 200, 240]
    lines, copy = home.folder / "out/predictions.jsonl", home.folder / "copy"
    for _ in range(4):
        # Restored from a backup: a file of another inode has another mark, which a checkpoint is written for.
        before = home.header()["outputs"]["predictions"]["mark"]
        shutil.copy(lines, copy)
        copy.replace(lines)
        killed(home, "consumed:1")
        assert home.header()["outputs"]["predictions"]["mark"] != before
        assert reached(home) == [100, 200, 240]
    assert runs(home) == 0
    assert reached(home) == [400, 500, 600]
    assert len(home.lines("out/predictions.jsonl")) == home.header()["account"]["predicted"]
