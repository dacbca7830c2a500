"""The benchmarks of window solvers, matrix risk and refits: what they say, and that a short run fills their pages."""

import json
from argparse import Namespace

import numpy as np
import pytest

from benchmarks import window_refit
from benchmarks.command import RESULTS
from benchmarks.solvers import matrix_page
from benchmarks.solvers.matrix_risk import Solver, random_matrices, solvers
from benchmarks.solvers.metric_tasks import digits
from benchmarks.window import EXPERIMENTS, rows
from tests.benchmark_runs import run_quickly
from tests.test_benchmarks import tables


@pytest.fixture
def folder(tmp_path):
    """Files like those of --data, of some hundred rows."""
    rng = np.random.default_rng(0)
    records = [np.flatnonzero(rng.random(123) < 0.1) for _ in range(900)]
    lines = [f"{1 if (r < 40).sum() > 4 else -1} " + " ".join(f"{i + 1}:1" for i in r) for r in records]
    (tmp_path / "a9a").write_text("\n".join(lines) + "\n")
    y = rng.integers(0, 10, size=700)
    X = rng.integers(0, 200, size=(700, 28, 28)).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", X_train=X[:600], y_train=y[:600], X_test=X[600:], y_test=y[600:])
    np.savez(tmp_path / "shuttle.npz", X=rng.normal(size=(500, 9)), y=rng.integers(0, 3, size=500))
    return tmp_path


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


def test_the_overview_has_what_each_page_says_first():
    published = tables((RESULTS / "window.md").read_text())[0]
    assert rows(RESULTS) == published[2:]


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


@pytest.mark.long
def test_a_quick_run_fills_the_page_and_keeps_its_runs(tmp_path):
    options = Namespace(data=tmp_path, quick=True, out=tmp_path, part=("100", "metric"))
    matrix_page.run(options)
    text = (tmp_path / "window_matrix.md").read_text()
    assert text.count("| d = 5, (m, q) = (3, 6) |") == len(solvers(3, 6))
    assert "| 4 tasks, d = 5, (m, q) = (24, 2) | DSPDC |" in text
    assert "| Euclidean | " in text
    assert (tmp_path / "window_matrix.png").stat().st_size > 10_000
    written = (tmp_path / "window_matrix.csv").read_bytes()
    matrix_page.run(options)
    assert (tmp_path / "window_matrix.csv").read_bytes() == written
