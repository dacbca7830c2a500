"""The benchmarks of speed: their arithmetic, their peers, and that a quick run of each fills its tables."""

import re

import pytest

from benchmarks import late_lags, multi_target
from tests.benchmark_runs import run_quickly


def run(module, folder):
    run_quickly(module, "--out", folder)
    return (folder / f"{module}.md").read_text()


def tables(text):
    """The tables, each a list of rows of cells."""
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in re.split(r"\n\n", text)
        if block.startswith("|")
    ]


#: By benchmark: how many rows each of its tables has in a quick run; None where their number depends on the machine.
ROWS = {
    "ablation": [1, 1],
    "bands": [7],
    "batch_step": [9, 9, 9, 9],
    "budget": [8],
    "columns": [50, 3],
    "growth_rates": [12],
    "least_squares": [2, 2],
    "memory_experts": [4, 4],
    "multi_target": [4],
    "parts": [10, 16],
    "scaling": [4, 4, 2, 2, 7, 7, 1, 2],
    "serving": [2, 2],
    "speed": None,
    "steps": [8, 2, 2, 4],
}


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_a_quick_run_fills_its_tables(name, tmp_path):
    run_quickly(name, "--out", tmp_path)
    found = tables((tmp_path / f"{name if name != 'batch_step' else 'batch-step'}.md").read_text())
    assert all(len(row) == len(table[0]) for table in found for row in table)
    assert ROWS[name] is None or [len(table) - 2 for table in found] == ROWS[name]
    # A ratio of speed that has a target reaches or misses it.
    judged = [row for row in found[0][2:] if name == "speed" and row[2]]
    assert all(re.fullmatch(r"reached|missed by [\d.]+%", row[4]) for row in judged)


def test_several_targets_are_measured_against_the_chain_on_the_same_records():
    lines = multi_target.rows("five", list(multi_target.five_functions(400)), rounds=1)
    assert [line[:3] for line in lines] == [["five", "5", multi_target.SEVERAL], ["five", "5", multi_target.CHAIN]]
    several, chain = (float(line[-1]) for line in lines)
    assert 0 < several < 1
    assert 0 < chain < 1


def test_a_quick_run_of_late_lags_has_each_way_to_learn(tmp_path, monkeypatch):
    words = ["late_lags", "--limit", "40", "--delays", "0", "3", "--streams", "TrumpApproval", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    late_lags.main()
    lines = (tmp_path / "late_lags.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| TrumpApproval")]
    assert [row[1] for row in rows] == ["0", "3"]
    at_once, late = ([float(cell.strip(" |")) for cell in row[2:]] for row in rows)
    assert at_once[1] == at_once[2]  # where labels come at once the lags are the same
    assert late[1] != late[2]
