"""A regressor with a distribution has its deviation on the prediction lines, however it is run; others have none."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelRegressor
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home

SOURCE = {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "float"}
OURS = [{"streamkernel.AdaptiveKernelRegressor": {"n_features": 32, "seed": 1}}]
PROCESS = [
    {
        "streamkernel.GaussianProcessRegressor": {
            "n_features": 16,
            "seed": 1,
            "variance": {"streamkernel.gaussian_process.VarianceOperator": {"block_size": 4, "max_features": 32}},
        }
    }
]
RECORDS = 900


def rows(n: int = RECORDS) -> tuple[list[dict[str, Any]], list[float | None]]:
    draw = random.Random(7)
    xs = [{"a": draw.gauss(0, 1), "b": draw.gauss(0, 1)} for _ in range(n)]
    ys = [None if draw.random() < 0.05 else math.sin(2 * x["a"]) + x["b"] + draw.gauss(0, 0.1) for x in xs]
    return xs, ys


@pytest.fixture
def numbers() -> str:
    xs, ys = rows()
    lines = ["a,b,y", *(f"{x['a']!r},{x['b']!r},{'' if y is None else repr(y)}" for x, y in zip(xs, ys, strict=True))]
    lines.insert(500, "1,2,not a number")
    return "\n".join(lines) + "\n"


def expected() -> tuple[list[float], list[float]]:
    """What the model tells of each record by River's own way, one by one."""
    model = AdaptiveKernelRegressor(n_features=32, seed=1)
    predictions = []
    for x, y in zip(*rows(), strict=True):
        predictions.append(model.predict_one(x, with_dist=True))
        model.learn_one(x, y)
    return [gaussian.mu for gaussian in predictions], [gaussian.sigma for gaussian in predictions]


def test_an_outcome_tells_the_deviation_of_the_errors_before() -> None:
    outcome = AdaptiveKernelRegressor(n_features=32, seed=1).advance(*rows())
    means, deviations = expected()
    assert outcome.deviations is not None
    assert outcome.deviations.shape == (RECORDS,)
    assert outcome.deviations.dtype == np.float64
    assert outcome.predictions == means
    assert outcome.deviations.tolist() == pytest.approx(deviations, rel=1e-12, nan_ok=True)
    assert math.isnan(outcome.deviations[0])  # nothing is known yet: 0 would claim certainty
    assert (outcome.deviations[2:] > 0).all()


@pytest.mark.parametrize("model", [AdaptiveKernelClassifier(seed=1), KernelRegressor(seed=1)])
def test_an_outcome_without_a_distribution_has_none(model: Any) -> None:
    assert model.advance([{"a": 1.0}, {"a": 2.0}], [1, 0]).deviations is None


def test_the_lines_hold_it(home: Home, numbers: str) -> None:
    (home.folder / "stream.csv").write_text(numbers)
    run(prepare(home.configure(source=SOURCE, model=OURS)))
    lines = home.lines("out/predictions.jsonl")
    assert len(lines) == RECORDS
    assert all(set(line) == {"position", "prediction", "target", "std"} for line in lines)
    means, deviations = expected()
    assert [line["prediction"] for line in lines] == means
    assert lines[0]["std"] is None
    assert [line["std"] for line in lines[1:]] == pytest.approx(deviations[1:], rel=1e-12)
