"""The benchmark of monitoring: its arithmetic, what its clients see, and that a quick run fills its tables."""

from __future__ import annotations

import re

import pytest

from benchmarks import monitoring
from tests.benchmark_runs import run_quickly


@pytest.mark.long
def test_a_quick_run_has_all_models_and_clients(tmp_path) -> None:  # type: ignore[no-untyped-def]
    run_quickly("monitoring", "--out", tmp_path)
    text = (tmp_path / "monitoring.md").read_text()
    found = [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
        for block in text.split("\n\n")
        if block.startswith("|")
    ]
    cost, scrapes, connections, refused = found
    assert [row[0] for row in cost] == list(monitoring.COST)
    assert [row[0] for row in connections] == list(monitoring.CONNECTIONS)
    assert {row[0] for row in scrapes} == set(monitoring.LEARNING)
    for row in (*cost[1:], *connections[1:]):
        assert all(re.fullmatch(r"\d\.\d{3} \(.*\)", cell) for cell in row[3:5]), row
    assert all(float(cell) > 0 for row in scrapes for cell in row[3:])
    assert [row[0] for row in refused] == list(monitoring.CONNECTIONS)[1:]


@pytest.mark.long
def test_a_quick_count_has_all_parts(tmp_path) -> None:  # type: ignore[no-untyped-def]
    run_quickly("monitoring_counted", "--out", tmp_path)
    text = (tmp_path / "monitoring-counted.md").read_text()
    shares = [float(share) for share in re.findall(r"([\d.]+)% \|$", text, re.MULTILINE)]
    assert len(shares) == 5
    assert shares[-1] == pytest.approx(sum(shares[:-1]), abs=0.05)
