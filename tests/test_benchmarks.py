"""The benchmarks of speed: their arithmetic, their peers, and that a quick run of each fills its tables."""

import argparse
import re

import numpy as np
import pytest

from benchmarks import (
    ablation,
    adaptive_growth,
    asked,
    batch_step,
    footprint,
    growth_rates,
    late_lags,
    least_squares,
    memory_experts,
    multi_target,
    predicting,
    report,
    rounds,
    scaling,
    serving_load,
    steps,
    streams,
)
from streamkernel.kernels import Gaussian
from tests.benchmark_runs import run_quickly


def test_streams_asked_for_are_those_that_can_be_read(tmp_path, capsys):
    there = streams.built_in()
    elsewhere = [stream for stream in streams.from_files(tmp_path) if stream.name == "House8L"]
    assert [one.name for one in asked.of_names(there + elsewhere, ["SEA", "House8L", "Mv"])] == ["SEA", "Mv"]
    assert "skipped, no such file in --data: House8L" in capsys.readouterr().out
    for names, message in ((["SEA", "sea"], "no stream is called sea; there are"), (["House8L"], "no stream is left")):
        with pytest.raises(SystemExit, match=message):
            asked.of_names(there + elsewhere, names)


def test_a_report_that_cannot_be_written_is_printed_and_says_so(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"is not written .*another folder by --out"):
        report.write(tmp_path / "file" / "page.md", "what was measured")
    assert "what was measured" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", ""])
def test_numbers_asked_for_are_whole_and_large_enough(text):
    assert asked.at_least(1)("1") == 1
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number of at least 1"):
        asked.at_least(1)(text)


def test_a_mistyped_stream_writes_no_report(tmp_path):
    path = tmp_path / "late_lags.md"
    with pytest.raises(SystemExit, match="no stream is called trump"):
        late_lags.main(["--streams", "trump", "--to", str(path)])
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--streams", "fride"], "no stream is called fride"),
        (["--streams", "SEA"], "no stream is called SEA"),  # of classes
        (["--data", "nowhere"], "no stream is left"),
    ],
)
def test_growth_asked_for_of_no_stream_of_numbers_writes_no_report(tmp_path, monkeypatch, arguments, message):
    monkeypatch.setattr("sys.argv", ["adaptive_growth", *arguments, "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match=message):
        adaptive_growth.main()
    assert not list(tmp_path.iterdir())


def test_every_round_has_every_call_in_alternating_order():
    called = []
    took = rounds.interleaved({"a": lambda: called.append("a"), "b": lambda: called.append("b")}, 3, at_least=0)
    assert "".join(called) == "aabb" + "ab" + "ba" + "ab"  # two of each before the first round
    assert [len(seconds) for seconds in took.values()] == [3, 3]


def test_a_ratio_says_whether_its_median_reaches_the_target():
    assert rounds.Ratio(1, "x", [1.0, 1.2, 9.0], 1.2).row() == ["1", "x", "<= 1.2", "1.20 (1.00 to 9.00)", "reached"]
    assert rounds.Ratio(1, "x", [1.1, 1.2, 1.3], 1.0).row()[-1] == "missed by 20.0%"
    assert rounds.Ratio(1, "x", [900.0], 1000, at_least=True).row()[2:] == [
        ">= 1,000",
        "900 (900 to 900)",
        "missed by 10.0%",
    ]
    assert rounds.Ratio(1, "x", [1500.0], 1000, at_least=True).row()[-1] == "reached"
    assert rounds.Ratio(1, "x", [2.0]).row()[-1] == ""


def test_a_slope_is_that_of_the_upper_half():
    assert scaling.slope({1: 7.0, 10: 7.0, 100: 3.0, 1000: 300.0}) == pytest.approx(2)
    assert scaling.slope({1: 1.0, 10: 2.0, 100: 5.0, 1000: 5.0}) == pytest.approx(0)
    assert scaling.slope({1: 1.0, 10: 0.0}) is None


def test_the_peers_compute_the_same_sums():
    took = predicting.seconds_of(3, 2 * predicting.TILE, 1)  # asserts it
    assert len(took) == 10


@pytest.mark.parametrize("structured", [False, True])
def test_a_model_of_any_size_predicts_and_learns(structured):
    model = footprint.regressor(320, 3, Gaussian(2.0, structured))
    X = np.random.default_rng(0).normal(size=(64, 3))
    assert model.n_features == 320
    assert np.ptp(model.predict_many(X)) > 0
    model.learn_many(X, X[:, 0])
    assert model.n_features == 320


def test_a_classifier_of_any_size_knows_its_classes():
    model = footprint.classifier(320, 3, 40, Gaussian(2.0))
    assert (model.n_features, len(model.classes)) == (320, 40)


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
def test_a_quick_run_of_scaling_draws_its_lines_and_states_their_slopes(tmp_path):
    found = tables(run("scaling", tmp_path))
    assert (tmp_path / "scaling.png").stat().st_size > 10_000
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


def test_a_model_of_any_kind_of_step_leaves_less_of_a_wave():
    records = steps.wave(1, 640, seed=1)
    left = [steps.variance_left(records, False, seed=1, **arguments) for arguments in steps.SETTINGS.values()]
    assert len(set(left)) == len(steps.SETTINGS)
    assert max(left) < 1


def test_a_pass_in_batches_learns_whatever_they_are_of():
    for data in (batch_step.waves(1_024), batch_step.of_stream(streams.built_in()[0], 1_024)):
        for size in (None, 64, 256):
            found = batch_step.measured(data, size, seed=1)
            assert 0 < found.half < found.whole < 100
            assert found.n_features >= 64


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
def test_a_quick_run_of_adaptive_growth_has_each_way_to_grow(tmp_path):
    alone, mixture = tables(run("adaptive_growth", tmp_path))
    assert [row[0] for row in alone[2:]] == [row[0] for row in mixture[2:]]
    assert len(alone) == 2 + len(adaptive_growth.QUICK) * len(adaptive_growth.DRIFTS)
    assert all(float(cell) > 0 for row in (*alone[2:], *mixture[2:]) for cell in (row[3], row[-1]))


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


def test_a_client_counts_what_is_answered_and_what_is_not():
    load = serving_load.Load(200)
    for wait, answer in enumerate(
        [b"HTTP/1.1 200 OK", b"HTTP/1.1 503 Service Unavailable\r\nX: y", b"HTTP/1.1 200 OK"]
    ):
        load.take(answer + b"\r\n\r\n", wait / 1000)
    assert (load.waits, load.failed) == ([0.0, 0.002], [b"HTTP/1.1 503 Service Unavailable"])
    assert [load.percentile(share) for share in (0.0, 0.5, 1.0)] == [0.0, 2.0, 2.0]


@pytest.mark.long
def test_a_quick_run_of_serving_answers_at_a_rate_and_as_fast_as_it_can(tmp_path):
    fixed, most = tables(run("serving", tmp_path))
    assert [row[0] for row in fixed[2:]] == [row[0] for row in most[2:]] == ["without a key", "with a key, journalled"]
    assert all(row[6] == "0" for row in (*fixed[2:], *most[2:]))  # none failed


def test_a_quick_run_of_late_lags_has_each_way_to_learn(tmp_path):
    path = tmp_path / "late_lags.md"
    late_lags.main(["--limit", "40", "--delays", "0", "3", "--streams", "TrumpApproval", "--to", str(path)])
    rows = [line.split(" | ") for line in path.read_text().splitlines() if line.startswith("| TrumpApproval")]
    assert [row[1] for row in rows] == ["0", "3"]
    at_once, late = ([float(cell.strip(" |")) for cell in row[2:]] for row in rows)
    assert at_once[1] == at_once[2]  # where labels come at once the lags are the same
    assert late[1] != late[2]
