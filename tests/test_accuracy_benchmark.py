"""What the accuracy benchmark feeds its models: lags, CapyMOA's schema, and the models that cannot run."""

import json

import numpy as np
import pytest

from benchmarks import capymoa_peers
from benchmarks.streams import with_lags
from tests.benchmark_runs import run_quickly


def test_a_regression_carries_its_last_three_targets():
    records = [({"a": float(i)}, 10 * i) for i in range(1, 6)]
    told = [[x[name] for name in ("a", "lag 1", "lag 2", "lag 3")] for x, _ in with_lags(records, 0)]
    assert told == [[1, 0, 0, 0], [2, 10, 0, 0], [3, 20, 10, 0], [4, 30, 20, 10], [5, 40, 30, 20]]
    assert [y for _, y in with_lags(records, 0)] == [10, 20, 30, 40, 50]


@pytest.mark.skipif(bool(capymoa_peers.missing()), reason=capymoa_peers.missing())
@pytest.mark.filterwarnings("default")  # of CapyMOA's own imports
@pytest.mark.parametrize("kind", capymoa_peers.CLASSIFIERS)
def test_capymoa_learns_classes(kind):
    rng = np.random.default_rng(1)
    model = capymoa_peers.Classifier(kind, seed=1, n_classes=2)
    right = 0
    for x in rng.normal(size=(400, 2)).tolist():
        record, y = {"a": x[0], "b": x[1]}, "up" if x[0] > 0 else "down"
        chances = model.predict_proba_one(record)
        assert not chances or sum(chances.values()) == pytest.approx(1)
        right += bool(chances) and max(chances, key=chances.__getitem__) == y
        model.learn_one(record, y)
    assert right > 300
    if kind == "SAMkNN":  # its matrix of distances is 5,000 by 5,000
        assert 7 * 5_000**2 < model._raw_memory_usage < 9 * 5_000**2


@pytest.mark.long
def test_a_quick_run_keeps_its_runs_and_writes_both_boards(tmp_path):
    models = "AdaptiveKernel,Linear,no change,Linear (lags)"
    chosen = "--models", models, "--streams", "Phishing,ChickWeights"
    run_quickly("accuracy", "--out", tmp_path, "--data", tmp_path, *chosen, "--jobs", 1)
    runs = [json.loads(line) for line in (tmp_path / "accuracy.jsonl").read_text().splitlines()]
    assert {(run["stream"], run["model"]) for run in runs} == {
        (stream, model) for stream in ("Phishing", "ChickWeights") for model in models.split(",")
    }
    text = (tmp_path / "accuracy.md").read_text()
    assert "## The sixteen streams" in text
    assert "## With the past of the target" in text
