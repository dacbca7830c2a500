"""The benchmark of digits: a quick run fills its tables, and keeps what it ran."""

from argparse import Namespace
from dataclasses import replace

import pytest

from benchmarks import digits
from benchmarks.digit_runs import Setting, run
from benchmarks.digits_report import report
from benchmarks.images import small
from tests.test_benchmarks import run as run_in_a_process
from tests.test_benchmarks import tables

TINY = {"block_size": 16, "batch_size": 64, "max_features": 64, "components": 10}


def test_runs_fill_the_tables_and_are_the_same_again(tmp_path):
    images = small()
    endless = Setting("endless", "CDSG", **TINY, precondition=True, blocks_per_step=2, records=1_000)
    passes = replace(endless, name="passes", records=0, passes=1, squared=True, weight=2.0)
    kept = []
    runs = [run(endless, images, 1, "", kept.append), *(run(passes, images, seed, "", kept.append) for seed in (1, 2))]
    assert [look.records for one in runs for look in one.looks] == [1000, 1500, 1500]
    assert kept == runs
    assert all(one.whole for one in runs)
    assert all(0 < look.error < 0.5 and 0 < look.making_core < look.core_seconds for one in runs for look in one.looks)
    assert run(endless, images, 1, "", kept.append).looks[-1].error == runs[0].looks[-1].error
    report(Namespace(out=tmp_path), runs, images.name)
    found = tables((tmp_path / "digits.md").read_text())
    assert all(len(row) == len(table[0]) for table in found for row in table)
    assert [[row[0] for row in table[2:]] for table in found] == [["endless"], ["endless"], ["passes"], ["passes"]]
    assert found[-1][-1][3].count(",") == 1  # of two seeds
    assert (tmp_path / "digits.png").stat().st_size > 10_000


@pytest.mark.long
def test_a_quick_run_of_digits_has_every_machine(tmp_path):
    endless, _, machines, passes = tables(run_in_a_process("digits", tmp_path))
    assert [row[0] for row in endless[2:]] == [one.name for one in digits.ENDLESS]
    assert [row[0] for row in machines[2:]] == sorted(one.name for one in digits.PASSES)
    assert [row[:2] for row in passes[2:]] == [[one.name, "1"] for one in digits.PASSES]
