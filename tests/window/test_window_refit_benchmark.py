"""The benchmark of refits: what it counts, and its tables."""

import json

import pytest

from benchmarks import window_refit


def pairs(n):
    return [({"a": i % 7, "b": i % 11}, float((i * i) % 7)) for i in range(n)]


def test_a_run_counts_every_record_and_its_second_half():
    plain = window_refit.run("toy", pairs(500), "no refit", window_refit.plain, 1)
    assert (plain.records, plain.refits, plain.longest) == (500, 0, 0.0)
    assert plain.late_score < plain.score
    make = window_refit.refitted(window=200, every=250)
    refitted = window_refit.run("toy", pairs(500), "Exact (default)", make, 1)
    assert refitted.refits == 2
    assert 0 < refitted.longest < refitted.seconds


def test_labels_are_scored_in_per_cent():
    labels = [({"a": i % 2}, f"class {i % 2}") for i in range(400)]
    assert 50 < window_refit.run("toy", labels, "no refit", window_refit.plain, 1).late_score <= 100


def test_the_report_has_a_row_for_each_model(tmp_path):
    runs = [window_refit.Run("s", 10, label, seed, 90.0 + seed, 91.0, 1.0, 2, 0.5) for label in "ab" for seed in (1, 2)]
    window_refit.report(runs, [["10,000", "256", "squared", "1.00"]], tmp_path)
    text = (tmp_path / "window_refit.md").read_text()
    assert "| s | 10 | a | 91.50 | 91.00 | 2 | 0.5 | 1.0 |" in text
    assert "| 10,000 | 256 | squared | 1.00 |" in text


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
