"""The benchmark of refits keeps the runs that are there."""

import json

import pytest

from benchmarks import window_refit


def test_a_quick_run_keeps_what_was_there(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "sys.argv",
        ["window_refit", "--quick", "--streams", "RandomRBF", "--models", "no refit", "--out", str(tmp_path)],
    )
    old = window_refit.Run("other", 10, "no refit", 1, 50.0, 50.0, 1.0, 0, 0.0)
    (tmp_path / "window_refit.jsonl").write_text(f"{json.dumps(vars(old))}\n")
    window_refit.main()
    kept = [json.loads(line) for line in (tmp_path / "window_refit.jsonl").read_text().splitlines()]
    assert [line.get("stream") for line in kept] == ["other", "RandomRBF", None]
    assert kept[1]["score"] == pytest.approx(75, abs=25)
