"""The benchmark of late labels runs, and fills its tables."""

from __future__ import annotations

from pathlib import Path

from benchmarks.labels import measure


def test_a_quick_run_fills_the_tables(tmp_path: Path) -> None:
    speeds, checkpoints = measure(tmp_path, records=1500, pending=600)
    assert [row[:2] for row in speeds] == [["with the record", "0"], ["late", "600"]]
    assert all(float(row[2].replace(",", "")) > 0 for row in speeds)
    assert [row[0] for row in checkpoints] == ["0", "600"]
    assert 0.1 < float(checkpoints[1][1]) - float(checkpoints[0][1]) < 0.3
