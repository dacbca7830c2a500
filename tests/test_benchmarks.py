"""The benchmarks of speed: their arithmetic, their peers, and that a quick run of each fills its tables."""

import re

import pytest

from benchmarks import (
    ablation,
    batch_step,
    growth_rates,
    late_lags,
    least_squares,
    memory_experts,
    multi_target,
    steps,
    streams,
)
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


@pytest.mark.long
def test_a_quick_run_of_speed_has_all_nine_ratios(tmp_path):
    found = tables(run("speed", tmp_path))
    assert all(len(row) == len(table[0]) for table in found for row in table)
    ratios = found[0][2:]
    assert {row[0] for row in ratios} == set("123456789")
    for number in "12345678":  # the ninth, of kinds of steps, has no target
        judged = [row for row in ratios if row[0] == number and row[2]]
        assert judged, number
        assert all(re.fullmatch(r"reached|missed by [\d.]+%", row[4]) for row in judged)


@pytest.mark.long
def test_a_quick_run_of_scaling_states_slopes(tmp_path):
    found = tables(run("scaling", tmp_path))
    assert len(found) == 8
    assert all(table[0][-1] == "slope" for table in found)
    assert all(row[-1] for table in found[:3] for row in table[2:])


@pytest.mark.long
def test_a_quick_run_of_steps_has_each_kind(tmp_path):
    tuned, others, waves, hinge = tables(run("steps", tmp_path))
    assert [row[0] for row in tuned[2:]] == list(steps.CHOSEN)
    assert [row[0] for row in others[2:]] == ["Mixed", "WaterFlow"]  # the rest are files
    assert [row[2] for row in waves[2:]] == ["independent", "structured"]
    assert all(len(set(row[2:])) > 2 for row in (*tuned[2:], *others[2:]))
    assert all(row[2] != row[3] for row in hinge[2:])


def test_several_targets_are_measured_against_the_chain_on_the_same_records():
    lines = multi_target.rows("five", list(multi_target.five_functions(400)), rounds=1)
    assert [line[:3] for line in lines] == [["five", "5", multi_target.SEVERAL], ["five", "5", multi_target.CHAIN]]
    several, chain = (float(line[-1]) for line in lines)
    assert 0 < several < 1
    assert 0 < chain < 1


@pytest.mark.long
def test_a_quick_run_of_several_targets_fills_its_page(tmp_path):
    run_quickly("multi_target", "--out", tmp_path)
    assert "SolarFlare (800)" in (tmp_path / "multi_target.md").read_text()


@pytest.mark.long
def test_a_quick_run_of_batch_steps_has_each_setting(tmp_path):
    run_quickly("batch_step", "--out", tmp_path)
    halves, wholes, features, seconds = tables((tmp_path / "batch-step.md").read_text())
    for found in (halves, wholes, features, seconds):
        names = [(row[0], row[2]) for row in found[2:]]
        assert names == [(of, name) for of in ("waves", "Friedman", "RandomRBF") for name in batch_step.SETTINGS]
    assert all(float(row[3]) > 0 for row in halves[2:])


@pytest.mark.long
def test_a_quick_run_of_parts_leaves_each_out(tmp_path):
    compared, found = tables(run("parts", tmp_path))
    assert {row[0] for row in compared[2:]} == {"trees", "learning again after a change"}
    assert all(row[3] != row[4] for row in compared if row[0] == "trees")
    assert len(found) == 2 + 16


@pytest.mark.long
def test_a_quick_run_of_least_squares_has_each_batch_size(tmp_path):
    for unit, found in zip(("", "us, "), tables(run("least_squares", tmp_path)), strict=True):
        assert [row[0] for row in found[2:]] == list(least_squares.QUICK)
        names = ("batches of 256", "batches of 32", "batches of 8", "one by one", "adaptive")
        assert found[0][1:] == [unit + name for name in names]
        assert all(float(cell.replace(",", "")) > 0 for row in found[2:] for cell in row[1:])


@pytest.mark.long
def test_a_quick_run_of_bands_has_each_regression(tmp_path):
    (found,) = tables(run("bands", tmp_path))
    names = [stream.name for stream in streams.built_in() if not stream.n_classes]
    assert [row[0] for row in found[2:]] == names
    assert all(30 < float(row[1].rstrip("%")) <= 100 and float(row[3]) > 0 for row in found[2:])


@pytest.mark.long
def test_a_quick_run_of_memory_experts_has_each_size(tmp_path):
    for found in tables(run("memory_experts", tmp_path)):
        assert [int(row[1].replace(",", "")) for row in found[2:]] == list(memory_experts.SIZES)
        assert len({row[4] for row in found[2:4]}) == 2


@pytest.mark.long
def test_a_quick_run_of_growth_rates_has_each_growth_in_each_size(tmp_path):
    (found,) = tables(run("growth_rates", tmp_path))
    assert [row[1].strip("`") for row in found[2:]] == list(growth_rates.GROWTHS) * len(growth_rates.SIZES)
    assert all(float(cell) > 0 for row in found[2:] for cell in (*row[2:4], *row[5:7]))
    assert (tmp_path / "growth_rates.png").stat().st_size > 10_000


@pytest.mark.long
def test_a_quick_run_of_budget_has_a_line_for_each_of_ours(tmp_path):
    (lines,) = tables(run("budget", tmp_path))
    assert len(lines) == 2 + 2 * 4
    assert all(re.fullmatch(r"[\d.]+", row[3]) for row in lines[2:])


@pytest.mark.long
def test_a_quick_run_of_ablation_leaves_each_part_out(tmp_path):
    classes, numbers = tables(run("ablation", tmp_path))
    assert len(classes[0]) == len(numbers[0]) == 2 + len(ablation.PARTS)
    assert classes[2][3] != "+0.00"  # Agrawal without trees
    assert numbers[2][4] != "+0.0%"  # Mv without a metric


@pytest.mark.long
def test_a_quick_run_of_columns_has_every_way_to_read_one(tmp_path):
    identifying, dates, reading = tables(run("columns", tmp_path))
    assert len(identifying) == 2 + 2 * 5 * 5
    assert [len(dates), len(reading)] == [2 + 3, 2 + 2 * 8]


@pytest.mark.long
def test_a_quick_run_of_serving_answers_at_a_rate_and_as_fast_as_it_can(tmp_path):
    fixed, most = tables(run("serving", tmp_path))
    assert [row[0] for row in fixed[2:]] == [row[0] for row in most[2:]] == ["without a key", "with a key, journalled"]
    assert all(row[6] == "0" for row in (*fixed[2:], *most[2:]))  # none failed


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
