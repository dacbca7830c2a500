"""The experiments of the papers: how runs are cut and compared, and that a quick run of each fills its page."""

import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest
from river.optim.losses import Squared

from benchmarks.digit_runs import Look, Run, Setting
from benchmarks.digits import keep
from benchmarks.images import small
from benchmarks.paper import deformed_eights, multiclass, posterior, ridge, utilize
from benchmarks.paper.__main__ import EXPERIMENTS, main, overview
from benchmarks.paper.baselines.learner import hinge
from benchmarks.paper.baselines.norma import Norma
from benchmarks.paper.problems import digits, signs, true_surface
from benchmarks.paper.runs import CurvePoint, after_passes, chosen, follow, mini_batches, misclassified, within
from benchmarks.paper.step_sizes import best_step
from benchmarks.paper.strong import StrongMachine, choice_table, choose
from benchmarks.paper.tables import write_looks
from streamkernel.kernels import Gaussian
from tests.benchmark_runs import run_quickly
from tests.test_benchmarks import tables


def looks(records, seconds, error):
    return [CurvePoint(r, s, e, 8, 16, r, 4, e) for r, s, e in zip(records, seconds, error, strict=True)]


def test_mini_batches_pass_over_all_rows_again_and_again():
    batches = mini_batches(10, 4, seed=1)
    rows = np.concatenate([next(batches) for _ in range(5)])
    assert sorted(rows[:10]) == sorted(rows[10:]) == list(range(10))
    assert rows[:10].tolist() != rows[10:].tolist()


def test_errors_of_signs_and_of_classes():
    assert signs(np.array([8, 6, 8]), [8, 6]).tolist() == [[1], [-1], [1]]
    T = signs(np.array([0, 2]), [0, 1, 2])
    assert T.tolist() == [[1, -1, -1], [-1, -1, 1]]
    assert misclassified(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), T) == 0.5
    assert misclassified(np.array([[3.0], [0.0]]), np.array([[1.0], [1.0]])) == 0.5


@pytest.fixture
def clock(monkeypatch):
    """A second passes from each look at the clock to the next."""
    monkeypatch.setattr("benchmarks.paper.runs.time.process_time", itertools.count().__next__)


def norma(problem):
    return Norma(problem.bandwidth, 1e-3, hinge)


@pytest.mark.usefixtures("clock")
def test_a_run_looks_at_every_share_of_a_pass_and_goes_on_for_a_time():
    problem = digits(quick=True)
    found = follow(norma, problem, 100, 1, looks=4)
    assert [(look.records, look.seconds) for look in found] == [(300, 4), (600, 7), (900, 10), (1200, 13)]
    assert found[-1].error < 0.2 < found[-1].nbytes
    assert [(look.work, look.stored) for look in found] == [(0, 0)] * 4
    longer = follow(norma, problem, 100, 1, seconds=20, looks=4)
    assert longer[:4] == found
    assert [(look.records, look.seconds) for look in longer[4:]] == [(1500, 16), (1800, 19)]
    assert after_passes(found, problem, 0.5).records == 600
    assert within(found, 3) is None
    assert within(found, 9) == found[1]


def test_the_parameter_with_the_least_error_on_rows_kept_apart_is_chosen():
    problem = digits(quick=True)
    makes = [("narrow", lambda part: norma(part.with_bandwidth(1e-3))), ("wide", norma)]
    assert chosen(makes, problem, 100)[0] == "wide"


def test_the_step_with_the_least_error_on_rows_kept_apart_is_chosen():
    problem, asked = digits(quick=True), []

    def make(step, seed):
        asked.append((step.get(3), seed))
        return lambda part: Scored(problem, part, misses=abs(step.get(3) - 8))

    assert best_step(make, problem, 100, seeds=(1, 2)) == (0, "step 8")
    # Schedules that fall are asked, too, and each with both seeds.
    assert {(256 / 2, 1), (256 / 2, 2), (0.5, 1), (32, 2)} <= set(asked)


class Scored:
    """A learner with a given number of errors. It fails if it is asked for rows that it learned."""

    nbytes = 0

    def __init__(self, problem, part, misses):
        self.targets = {row.tobytes(): T for row, T in zip(problem.X, problem.T, strict=True)}
        self.learned, self.misses = set(), round(misses)
        assert part.n + len(part.X_test) == problem.n

    def learn(self, X, T, rows):  # noqa: ARG002 - an interface
        self.learned |= {row.tobytes() for row in X}

    def scores(self, X):
        assert not self.learned & {row.tobytes() for row in X}
        found = np.array([self.targets[row.tobytes()] for row in X])
        found[: self.misses] *= -1
        return found


def test_the_time_to_a_level_is_between_two_looks():
    assert utilize.reached([1, 2, 3], [0.5, 0.3, 0.1], 0.2) == pytest.approx(2.5)
    assert utilize.reached([1, 2, 3], [0.5, 0.3, 0.1], 0.6) == 1
    assert utilize.reached([1, 2, 3], [0.5, 0.3, 0.1], 0.05) is None


def test_the_candidate_with_the_fewest_wrong_rows_is_chosen():
    problem = digits(quick=True)
    candidates = [StrongMachine(300, 32, 1, width, 20) for width in (1e-3, 1.0)]
    best, wrong = choose(candidates, problem)
    assert best is candidates[1]
    assert wrong[1] < 0.5 * problem.n < wrong[0]
    assert best.of(problem).X.shape == (problem.n, 20)
    assert tables(choice_table(candidates, wrong, problem))[0][2][1:7] == ["300", "32", "1", "none", "0.001", "20"]


def test_the_error_of_a_variance_is_of_what_is_on_the_diagonal():
    explained = np.array([[0.25, 9], [9, 0.5]])
    assert posterior.variance_error(explained, np.diag([0.25, 0.5])) == 0
    assert posterior.variance_error(explained, np.zeros((2, 2))) == 0.375


def test_dsg_solves_the_ridge_regression_of_the_posterior():
    _, mean, _, _ = posterior.problems(posterior.QUICK)
    machine = posterior.growing(mean, 1, 32)
    # A step is f <- (1 - s nu) f - s E l'(f, y) k: its fixed point is found with the derivative of the machine's loss.
    nu, slope = machine.model.regularization, Squared().gradient(0.0, 1.0)
    K = Gaussian().matrix(mean.X, mean.X, mean.bandwidth)
    across = Gaussian().matrix(mean.X_test, mean.X, mean.bandwidth)
    solution = across @ np.linalg.solve(slope * K + mean.n * nu * np.eye(mean.n), slope * mean.T)
    assert posterior.mean_error(solution, mean.T_test) < 1e-9


def test_the_machine_of_deformed_images_is_chosen_on_training_images():
    images = deformed_eights.eights_and_sixes(small())
    assert set(images.labels.tolist()) == set(images.test_labels.tolist()) == {6, 8}
    parts = [deformed_eights.fold(images, number) for number in range(deformed_eights.FOLDS)]
    assert np.array_equal(np.sort(np.concatenate([part.test for part in parts]), axis=0), np.sort(images.train, axis=0))
    assert all(len(part.train) + len(part.test) == len(images.train) for part in parts)
    tiny = replace(deformed_eights.CANDIDATES[1], block_size=64, batch_size=64, max_features=128, components=10)
    assert deformed_eights.wrong_images(tiny, images, 1_000) < 0.1 * len(images.train)


def test_the_end_of_the_deformed_images_is_a_row_beside_the_others(tmp_path):
    assert deformed_eights.last_row(tmp_path) == []
    points = [CurvePoint(n, s, e, 4_000_000, 0) for n, s, e in ((1_000, 2.0, 0.5), (2_000, 3.25, 0.001))]
    write_looks(tmp_path / "paper_deformed.csv", {("8 against 6", "DSG", 1): points})
    name = "preconditioned blocks, 2,000 deformed rows"
    assert deformed_eights.last_row(tmp_path) == [[name, "0.10", "3.2", "4", "-", ""]]


def test_norma_comes_closer_to_mean_and_variance():
    _, mean, _, variance = posterior.problems(posterior.QUICK)
    for problem, score in ((mean, posterior.mean_error), (variance, posterior.variance_error)):
        found = follow(posterior.norma, problem, 64, 1, passes=30, looks=1, score=score)
        assert found[-1].error < 0.7 * found[0].error


def test_runs_of_the_digits_are_read_as_they_were_kept(tmp_path):
    problem = digits(quick=True)
    setting = Setting("MNIST softmax", "DSG", 16, 64, None, passes=1)
    run = Run(setting, 2, "", "", [Look(1_200, 48, 0.02, 1.0, 2.0, 0.5)], whole=True)
    endless = replace(run, setting=replace(setting, passes=0, records=9_000))
    keep(tmp_path / "digits.jsonl", [endless, replace(run, seed=3, whole=False)], run)
    found = multiclass.preconditioned(tmp_path / "digits.jsonl", problem)
    (look,) = found.pop((problem.name, "preconditioned: softmax", 2))
    assert not found
    assert (look.records, look.seconds, look.error) == (1_200, 2.5, 0.02)
    assert (look.nbytes, look.stored) == (4 * 2 * 48 * 10, 4 * 2 * 48 * 1_200)


def test_a_ratio_is_dsgs_time_to_its_final_error_over_anothers():
    problem = digits(quick=True)
    runs = {
        (problem.name, "DSG", 1): looks([1, 2, 3], [1.0, 2.0, 4.0], [0.5, 0.4, 0.2]),
        (problem.name, "CDSG", 1): looks([1, 2, 3], [1.0, 2.0, 3.0], [0.5, 0.2, 0.1]),
        (problem.name, "UDSG", 1): looks([1, 2], [1.0, 2.0], [0.5, 0.4]),
    }
    assert utilize.ratio(runs, problem, "seconds", "error", "CDSG") == pytest.approx(2.5)  # means of three
    assert utilize.ratio(runs, problem, "seconds", "error", "UDSG") is None


def test_a_slope_is_that_from_a_step_on():
    steps = [1, 2, 4, 8, 16, 32, 64]
    found = ridge.Convergence(steps, [9.0] * 7, [9.0] * 4 + [1 / step for step in steps[4:]], (0.0, 0.0))
    assert found.slope(found.averaged) == pytest.approx(-1)
    assert found.slope(found.last) == pytest.approx(0)


def test_the_average_comes_closer_to_the_function():
    found = ridge.converge(64, 16, seed=1)
    assert found.steps == [1, 2, 3, 4, 6, 8, 11, 16]
    points = np.random.default_rng(0).uniform(-5, 5, size=(1_000, 2))
    assert found.averaged[-1] < 0.5 * np.mean(true_surface(points) ** 2)


def test_a_quick_run_without_files_says_what_it_left_out(tmp_path):
    utilize.run(None, True, tmp_path)
    text = (tmp_path / "paper_cdsg.md").read_text()
    ratios, ends = tables(text)
    assert [row[1] for row in ratios[2:]] == ["UDSG", "CDSG, cap 1", "CDSG, cap 2", "SVRG"]
    assert [row[1] for row in ends[2:]] == ["DSG", "UDSG", "CDSG, cap 1", "CDSG, cap 2", "SVRG"]
    assert "not in --data: mnist, adult" in text
    assert (tmp_path / "paper_cdsg.png").stat().st_size > 10_000
    assert (tmp_path / "paper_cdsg.csv").read_text().count("\n") > 30


def test_the_overview_leads_to_every_page_there_is(tmp_path):
    for name in EXPERIMENTS:
        assert f"{name}: not measured yet" in overview(tmp_path)
        (tmp_path / f"paper_{name}.md").touch()
        assert f"(paper_{name}.md)" in overview(tmp_path)
    assert "trained convolutional net" in overview(tmp_path)


@pytest.fixture
def folder(tmp_path):
    """Files like a9a and mnist.npz, of some hundred rows."""
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(rng.random(123) < 0.1) for _ in range(1_500)]
    lines = [f"{1 if (r < 40).sum() > 4 else -1} " + " ".join(f"{i + 1}:1" for i in r) for r in rows]
    (tmp_path / "a9a").write_text("\n".join(lines) + "\n")
    y = rng.integers(0, 10, size=1_800)
    X = rng.integers(0, 60, size=(1_800, 28, 28))
    X[np.arange(1_800), 2 * y] = 200
    X = X.astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", X_train=X[:1_400], y_train=y[:1_400], X_test=X[1_400:], y_test=y[1_400:])
    return tmp_path


@pytest.mark.long
def test_a_quick_run_of_all_fills_every_page(folder, tmp_path):
    out = tmp_path / "out"
    run_quickly("paper", "--data", folder, "--out", out)
    pages = {name: (out / f"paper_{name}.md").read_text() for name in EXPERIMENTS}
    assert not any("Not run" in text for text in pages.values())
    for name, text in pages.items():
        assert (out / f"paper_{name}.csv").read_text().startswith("problem,algorithm,seed,records,seconds,error")
        assert (out / f"paper_{name}.png").exists()
        found = tables(text)
        assert all(len(row) == len(table[0]) for table in found for row in table)
    for name in ("adult", "eights"):
        judged, candidates, rows = tables(pages[name])
        assert [len(judged), len(candidates)] == [3, 4]
        algorithms = {row[0].split(",")[0] for row in rows}
        assert {"NORMA", "k-SDCA", "r-SDCA", "n-SDCA", "r-Pegasos", "n-Pegasos", "FOGD", "NOGD"} <= algorithms
        assert {"scikit-learn's SVC", "DSG", "CDSG", "preconditioned blocks"} <= algorithms
    (posteriors,) = tables(pages["gp"])
    assert [row[0] for row in posteriors[2:]] == ["mean"] * 6 + ["variance"] * 3
    assert len(tables(pages["cdsg"])[0]) == 2 + 12


def test_an_unknown_experiment_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["paper", "ridge", "imagenet"])
    with pytest.raises(SystemExit) as refused:
        main()
    assert refused.value.code == 2
    assert (
        "no experiment imagenet: there are ridge, gp, adult, eights, deformed, mnist, cdsg" in capsys.readouterr().err
    )
