"""The experiments of the papers: how runs are cut and compared, and that a quick run of each fills its page."""

import itertools

import numpy as np
import pytest

from benchmarks.paper import ridge, utilize
from benchmarks.paper.__main__ import EXPERIMENTS
from benchmarks.paper.baselines.learner import hinge
from benchmarks.paper.baselines.norma import Norma
from benchmarks.paper.problems import true_surface
from benchmarks.paper.runs import CurvePoint
from tests.benchmark_runs import run_quickly
from tests.test_benchmarks import tables


def looks(records, seconds, error):
    return [CurvePoint(r, s, e, 8, 16, r, 4, e) for r, s, e in zip(records, seconds, error, strict=True)]


@pytest.fixture
def clock(monkeypatch):
    """A second passes from each look at the clock to the next."""
    monkeypatch.setattr("benchmarks.paper.runs.time.process_time", itertools.count().__next__)


def norma(problem):
    return Norma(problem.bandwidth, 1e-3, hinge)


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
