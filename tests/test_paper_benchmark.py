"""The experiments of the papers: how runs are cut and compared, and that a quick run of each fills its page."""

from argparse import Namespace

import numpy as np
import pytest

from benchmarks.paper import ridge, utilize
from benchmarks.paper.__main__ import EXPERIMENTS
from benchmarks.paper.problems import true_surface
from tests.benchmark_runs import run_quickly
from tests.test_benchmarks import tables


def test_the_average_comes_closer_to_the_function():
    found = ridge.converge(64, 16, seed=1)
    assert found.steps == [1, 2, 3, 4, 6, 8, 11, 16]
    points = np.random.default_rng(0).uniform(-5, 5, size=(1_000, 2))
    assert found.averaged[-1] < 0.5 * np.mean(true_surface(points) ** 2)


def test_a_quick_run_without_files_says_what_it_left_out(tmp_path):
    utilize.run(Namespace(data=None, quick=True, out=tmp_path))
    text = (tmp_path / "paper_cdsg.md").read_text()
    ratios, ends = tables(text)
    assert [row[1] for row in ratios[2:]] == ["UDSG", "CDSG, cap 1", "CDSG, cap 2", "SVRG"]
    assert [row[1] for row in ends[2:]] == ["DSG", "UDSG", "CDSG, cap 1", "CDSG, cap 2", "SVRG"]
    assert "not in --data: mnist, adult" in text
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
        found = tables(text)
        assert all(len(row) == len(table[0]) for table in found for row in table)
    for name in ("adult", "eights"):
        judged, candidates, rows = tables(pages[name])
        assert [len(judged), len(candidates)] == [3, 4]
        algorithms = {row[0].split(",")[0] for row in rows}
        assert {"NORMA", "k-SDCA", "r-SDCA", "n-SDCA", "r-Pegasos", "n-Pegasos", "FOGD", "NOGD"} <= algorithms
        assert {"scikit-learn's SVC", "DSG", "CDSG", "preconditioned blocks"} <= algorithms
    (digits,) = tables(pages["mnist"])
    assert [row[0] for row in digits[2:8:2]] == ["DSG, a pass", "CDSG, cap 1, a pass", "CDSG, cap 2, a pass"]
    assert len(digits) == 2 + 6 + 8 + 1
    (posteriors,) = tables(pages["gp"])
    assert [row[0] for row in posteriors[2:]] == ["mean"] * 6 + ["variance"] * 3
    assert len(tables(pages["cdsg"])[0]) == 2 + 12
