"""The benchmark of digits: a quick run fills its tables, and keeps what it ran."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import digits
from benchmarks.digit_runs import Setting, looks_due, records, run
from benchmarks.digits_report import report
from benchmarks.images import Components, flat, small
from tests.test_benchmarks import run as run_in_a_process
from tests.test_benchmarks import tables

TINY = {"block_size": 16, "batch_size": 64, "max_features": 64, "components": 10}


def test_components_are_those_of_the_covariance():
    images = small()
    pixels = flat(images.train).astype(float)
    got = Components(images.train, 5).of(flat(images.train))
    assert got.shape == (1500, 5)
    assert np.cov(got, rowvar=False) == pytest.approx(
        np.diag(np.linalg.eigvalsh(np.cov(pixels, rowvar=False))[::-1][:5]), abs=1e-4
    )


def test_passes_go_over_every_image_in_a_new_order():
    images = small()
    setting = Setting("two", "DSG", **TINY, passes=2)
    parts = list(records(setting, images, 1))
    pixels = np.concatenate([pixels for pixels, _ in parts])
    assert len(pixels) == 3000
    first, second = pixels[:1500], pixels[1500:]
    assert not np.array_equal(first, second)
    assert first.sum() == pytest.approx(second.sum())
    assert looks_due(setting, 1500) == {1500, 3000}


def test_the_looks_of_the_endless_stream_are_ever_further_apart():
    setting = Setting("endless", "DSG", **TINY, records=100_000)
    assert sorted(looks_due(setting, 1500)) == [10_000, 15_000, 22_000, 33_000, 50_000, 75_000, 100_000]


def test_runs_fill_the_tables_and_are_the_same_again(tmp_path):
    images = small()
    endless = Setting("endless", "CDSG", **TINY, precondition=True, blocks_per_step=2, records=1_000)
    passes = replace(endless, name="passes", records=0, passes=1)
    runs = [run(endless, images, 1, ""), *(run(passes, images, seed, "") for seed in (1, 2))]
    assert [look.records for one in runs for look in one.looks] == [1000, 1500, 1500]
    assert all(0 < look.error < 0.5 and 0 < look.making_core < look.core_seconds for one in runs for look in one.looks)
    assert run(endless, images, 1, "").looks[-1].error == runs[0].looks[-1].error
    report(runs, images.name, tmp_path, quick=True)
    found = tables((tmp_path / "digits.md").read_text())
    assert all(len(row) == len(table[0]) for table in found for row in table)
    assert [[row[0] for row in table[2:]] for table in found] == [["endless"], ["endless"], ["passes"]]
    assert (tmp_path / "digits.png").stat().st_size > 10_000


def test_a_run_that_is_there_is_not_repeated(tmp_path, monkeypatch):
    calls = []

    monkeypatch.setattr(digits, "ENDLESS", [])
    monkeypatch.setattr(digits, "PASSES", [Setting("one pass", "DSG", **TINY, passes=1)])
    monkeypatch.setattr(digits, "run", lambda *given: calls.append(given[0].name) or run(*given))
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["digits", "--quick", "--out", str(tmp_path)])
        digits.main()
    assert calls == ["one pass"]
    assert len([json.loads(line) for line in (tmp_path / "digits.jsonl").read_text().splitlines()]) == 1


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    for arguments, said in [
        (["--data", str(tmp_path)], r"no mnist.npz in --data: give the folder that has it, or --quick"),
        (["--quick", "--runs", "x", "--out", str(tmp_path)], r"no run is called x; there are preconditioned"),
    ]:
        monkeypatch.setattr("sys.argv", ["digits", *arguments])
        with pytest.raises(SystemExit, match=said):
            digits.main()


@pytest.mark.long
def test_a_quick_run_of_digits_has_every_machine(tmp_path):
    endless, _, passes = tables(run_in_a_process("digits", tmp_path))
    assert [row[0] for row in endless[2:]] == [one.name for one in digits.ENDLESS]
    assert [row[0] for row in passes[2:]] == [one.name for one in digits.PASSES]
