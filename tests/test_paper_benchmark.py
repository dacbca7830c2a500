"""The experiments of the papers: a quick run of each fills its page."""

import numpy as np
import pytest

from benchmarks.paper.__main__ import EXPERIMENTS
from tests.benchmark_runs import run_quickly
from tests.test_benchmarks import tables


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
    (digits,) = tables(pages["mnist"])
    assert [row[0] for row in digits[2:8:2]] == ["DSG, a pass", "CDSG, cap 1, a pass", "CDSG, cap 2, a pass"]
    assert len(digits) == 2 + 6 + 8 + 1
    (posteriors,) = tables(pages["gp"])
    assert [row[0] for row in posteriors[2:]] == ["mean"] * 6 + ["variance"] * 3
    assert len(tables(pages["cdsg"])[0]) == 2 + 12
