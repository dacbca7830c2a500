"""The benchmarks of window solvers, matrix risk and refits: what they say, and that a short run fills their pages."""

import json
import math

import numpy as np
import pytest

from benchmarks import window_refit
from benchmarks.solvers import dspdc_page, matrix_page, s3gd_page, slopes
from benchmarks.solvers.curve import LossCurve
from benchmarks.solvers.data import PENALTIES, SIZES, factorized, two_classes
from benchmarks.solvers.matrix_risk import Look, Solver, random_matrices, solvers
from benchmarks.solvers.metric_tasks import digits
from benchmarks.solvers.optimum import Optimum
from benchmarks.solvers.s3gd_runs import Plateau, chosen
from benchmarks.solvers.task import Task
from benchmarks.window import EXPERIMENTS, overview
from tests.benchmark_runs import run_quickly
from tests.test_benchmarks import tables

BEST = Optimum(np.zeros(2), 1.0, 0.0)


def curve(*seconds_and_excess):
    seconds, excess = zip(*seconds_and_excess, strict=True)
    n = len(seconds)
    return LossCurve(list(seconds), list(seconds), [1 + e for e in excess], [math.nan] * n, [1.0] * n)


def runs(**seconds):
    """Solvers that come to 1e-7 after so many seconds, or never."""
    return {name: [curve((0, 1.0), (s, 1e-7 if s < 9 else 1e-3))] for name, s in seconds.items()}


def test_the_papers_data():
    task = factorized(SIZES[0], PENALTIES[0], "smooth_hinge")
    assert task.A.shape == (5_000, 100)
    U, V = task.factors
    np.testing.assert_allclose(U @ V, task.A)
    assert (task.l1, task.l2) == (1e-3, 1e-2)
    # Labels follow the sum of the first 50 columns of X, of deviation 7: few are noise; a sketch keeps some of it.
    assert np.mean(task.y > 0) == pytest.approx(0.5, abs=0.05)


def test_the_target_that_is_missed_comes_first():
    task = Task("one", np.eye(2), np.ones(2), "smooth_hinge", 1e-2, factors=(np.eye(2), np.eye(2)))
    fast = {"DSPDC": 1.0, "SPDC": 2.0, "SDCA": 9.0, "DSPDC on A": 3.0, "SPDC on A": 2.0, "SDCA on A": 1.0}
    won, lost = (task, BEST, runs(**fast)), (task, BEST, runs(**{**fast, "SDCA": 0.5}))
    assert dspdc_page.wins([won, lost]) == [True, False]
    said = dspdc_page.verdict([won] * 4 + [lost] * 2)
    assert said.startswith("Target reached: on factors, DSPDC is faster than SPDC and SDCA to 1e-6 on 4 of 6")
    said = dspdc_page.verdict([won] * 3 + [lost] * 3)
    assert said.startswith("Target MISSED")
    assert "not on: one; one; one" in said
    (rows,) = tables(dspdc_page.seconds_table([won]))
    assert rows[0][0] == "CPU seconds to 1e-6"
    assert "> 9.0 (1e-03 above)" in rows[2]


def test_a_solver_that_never_comes_there_is_not_faster():
    task = Task("one", np.eye(2), np.ones(2), "smooth_hinge", 1e-2)
    assert dspdc_page.wins([(task, BEST, runs(DSPDC=9.0, SPDC=9.0, SDCA=9.0))]) == [False]


def test_the_largest_stable_step():
    ends = {0.1: Plateau(1e-3, 1.0), 1.0: Plateau(9e-3, 1.0), 5.0: Plateau(2e-2, 1.0), 10.0: Plateau(math.inf, 1.0)}
    assert chosen(ends) == 1.0
    assert chosen({step: Plateau(1.0, 1.0) for step in ends}) == 0.1


def measured(switch, anchors):
    """Of a task on which SVRG takes a second to both distances, and S3GD that switches so many."""
    task = Task("one", np.eye(2), np.ones(2), "log", 1e-2)
    ends = {"S3GD": {1.0: Plateau(1e-4, 0.1)}, "SGD": {1.0: Plateau(1e-3, 0.1)}}
    falls = [curve((0, 1.0), (1.0, 1e-9))]
    found = dict.fromkeys(("SVRG", "SVRG, its defaults"), falls)
    found |= {name: [curve((0, 1.0), (0.1, 1e-2))] for name in ("S3GD", "S3GD, no switch")}
    found["S3GD, then SVRG"] = [curve((0, 1.0), (switch, 1e-9))]
    found["S3GD, then SVRG"][0].preparation = anchors
    return s3gd_page.Measured(task, BEST, ends, {"S3GD": 1.0, "SGD": 1.0}, found, {}, 0.0)


def test_the_switch_is_judged_with_and_without_its_anchors():
    (near, ratio, whole), far = s3gd_page.switch_rows([measured(1.1, 0.5)])
    assert (near[0], near[1], far[0][1]) == ("one", "0.001", "1e-08")
    assert ratio == pytest.approx(1.1)
    assert whole == pytest.approx(ratio + 0.5 / (1 / 3), rel=1e-6)  # SVRG is at 1e-3 after a third of a second
    first, *others = s3gd_page.verdicts([measured(1.1, 0.5)])
    assert first.startswith("- Target MISSED: S3GD that switches, with the time of its anchors")
    assert all(line.startswith("- Target reached") for line in others)
    at, ahead = measured(1.1, 0.5).crossing()
    assert at == pytest.approx(4 / 9)
    assert not ahead


def test_the_overview_leads_to_what_is_there(tmp_path):
    (tmp_path / "window_s3gd.md").write_text("# S3GD\n\n- Target MISSED: one.\n- Target reached: two.\n\nMore.\n")
    text = overview(tmp_path)
    assert "[window_s3gd](window_s3gd.md)" in text
    assert "| Target MISSED: one. Target reached: two. |" in text
    assert "dspdc: not measured yet" in text


@pytest.fixture
def folder(tmp_path):
    """Files like those of --data, of some hundred rows."""
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(rng.random(123) < 0.1) for _ in range(900)]
    lines = [f"{1 if (r < 40).sum() > 4 else -1} " + " ".join(f"{i + 1}:1" for i in r) for r in rows]
    (tmp_path / "a9a").write_text("\n".join(lines) + "\n")
    y = rng.integers(0, 10, size=700)
    X = rng.integers(0, 200, size=(700, 28, 28)).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", X_train=X[:600], y_train=y[:600], X_test=X[600:], y_test=y[600:])
    np.savez(tmp_path / "shuttle.npz", X=rng.normal(size=(500, 9)), y=rng.integers(0, 3, size=500))
    return tmp_path


def test_the_four_data_sets(folder):
    assert [task.name for task in two_classes(folder)] == ["a9a", "shuttle", "MNIST"]
    for task in two_classes(folder):
        assert np.square(task.A).sum(axis=1).mean() == pytest.approx(1)
        assert np.ptp(task.A[:, -1]) == 0
        assert task.w.mean() == pytest.approx(1)
        assert len(task.test[0]) >= 100
    mnist = two_classes(folder)[-1]
    assert mnist.w[mnist.y > 0].sum() == pytest.approx(mnist.w[mnist.y < 0].sum())
    assert two_classes(None) == []


@pytest.mark.long
def test_a_quick_run_of_all_fills_every_page(folder, tmp_path):
    out = tmp_path / "out"
    run_quickly("window", "--data", folder, "--out", out)
    for name in EXPERIMENTS:
        text = (out / f"window_{name}.md").read_text()
        assert all(len(row) == len(found[0]) for found in tables(text) for row in found)
        assert (out / f"window_{name}.csv").exists()
        for plot in [part.split(")")[0] for part in text.split("](")[1:]]:
            assert (out / plot).exists(), plot
    assert "not measured yet" not in (out / "window.md").read_text()


@pytest.mark.parametrize("form", ["factors", "A"])
def test_an_iteration_takes_time(form):
    assert 0 < slopes.iteration_seconds(form, n=60, p=16, d=8, m=2, q=4) < 1


def test_the_gap_falls_faster_than_theorem_2_says():
    m, q, true, theorem, slope, last, thumb, *_ = slopes.gap_slopes(20, 5, n=60, p=10)
    assert (m, q) == ("20", "5")
    assert float(true) > 0
    assert float(thumb) > 0
    assert float(slope) <= float(theorem) < 0
    assert float(last) <= 1e-12


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


@pytest.mark.parametrize("kind", ["matrix risk", "metrics"])
def test_all_solvers_come_to_one_optimum(kind):
    problem = random_matrices(6, 3, 3) if kind == "matrix risk" else digits(None, 3, 12, 3).problem()
    ends = {}
    for solver in solvers(4, 2):
        looks = solver.run(problem, np.inf, 1e-6, passes=200)
        assert [look.seconds for look in looks] == sorted(look.seconds for look in looks)
        ends[solver.name] = looks[-1]
    # No objective is below what another solver's gap allows.
    assert min(end.objective for end in ends.values()) >= max(end.objective - end.gap for end in ends.values()) - 1e-12
    for name in ("DSPDC", "SPDC", "SDCA, measured blocks"):
        assert ends[name].gap <= 1e-5, name
    # An iteration of SPDC and of SDCA takes p eigenvalue decompositions, one of DSPDC q.
    spdc = Solver("SPDC", 4, None).run(problem, np.inf, 0.0, passes=1)[-1]
    dspdc = Solver("DSPDC", 4, 1).run(problem, np.inf, 0.0, passes=1)[-1]
    assert spdc.projections % problem.data.p == 0
    assert dspdc.passes == spdc.passes


def test_runs_that_stay_at_the_start_are_at_the_lowest():
    looks = [Look(passes, 0.1, 6, 0.5, 0.2) for passes in (0.0, 1.0)]
    runs = [matrix_page.Run("metric", "d = 5, (m, q) = (3, 6)", name, looks) for name in ("DSPDC", "SPDC")]
    assert matrix_page.excess(runs[0], runs).tolist() == [0.0, 0.0]


@pytest.mark.long
def test_a_quick_run_fills_the_page_and_keeps_its_runs(tmp_path):
    matrix_page.run(None, True, tmp_path, ("100", "metric"))
    text = (tmp_path / "window_matrix.md").read_text()
    assert text.count("| d = 5, (m, q) = (3, 6) |") == len(solvers(3, 6))
    assert "| 4 tasks, d = 5, (m, q) = (24, 2) | DSPDC |" in text
    assert "| Euclidean | " in text
    assert (tmp_path / "window_matrix.png").stat().st_size > 10_000
    written = (tmp_path / "window_matrix.csv").read_bytes()
    matrix_page.run(None, True, tmp_path, ("100",))
    assert (tmp_path / "window_matrix.csv").read_bytes() == written
