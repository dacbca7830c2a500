"""The benchmark of matrix risk and metric learning: its solvers agree, and a quick run fills its page."""

import numpy as np
import pytest

from benchmarks.solvers import matrix_page
from benchmarks.solvers.matrix_risk import Look, Solver, random_matrices, solvers
from benchmarks.solvers.metric_tasks import digits


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
