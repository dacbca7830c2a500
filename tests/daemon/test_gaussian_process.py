"""A Gaussian process in the daemon: from a configuration into lines with its deviation, checkpoints and back."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import pytest
from river import compose, preprocessing

from streamkernel import GaussianProcessRegressor
from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.runtime import run
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from tests.daemon.conftest import Home

SOURCE = {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "float"}
PROCESS = {"n_features": 8, "seed": 1, "kernel": {"streamkernel.kernels.Matern": {"nu": 2.5}}}
VARIANCES: dict[str, Any] = {
    "posterior": None,
    "operator": {"streamkernel.gaussian_process.VarianceOperator": {"batch_size": 16, "block_size": 4}},
    "test points": {
        "streamkernel.gaussian_process.TestPointFunctions": {
            "points": [{"a": 0.0, "b": 0.5}, {"a": 1}],
            "batch_size": 16,
            "max_features": 256,
        }
    },
}


def _model(variance: str) -> list[Any]:
    return [{"streamkernel.GaussianProcessRegressor": {**PROCESS, "variance": VARIANCES[variance]}}]


def _records(n: int) -> list[tuple[dict[str, float], float]]:
    draw = random.Random(7)
    xs = [{"a": draw.gauss(0, 1), "b": draw.gauss(0, 1)} for _ in range(n)]
    return [(x, math.sin(2 * x["a"]) + x["b"]) for x in xs]


@pytest.mark.parametrize("variance", VARIANCES)
def test_its_lines_have_its_deviation_and_a_run_goes_on(home: Home, variance: str) -> None:
    records = _records(150)
    rows = [f"{x['a']!r},{x['b']!r},{y!r}" for x, y in records]
    (home.folder / "stream.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    config = home.configure(source=SOURCE, model=_model(variance))
    run(prepare(config), max_records=115)
    plan = prepare(config)
    run(plan)
    twin = build_model(_model(variance))
    assert isinstance(twin, GaussianProcessRegressor)
    expected = []
    for x, y in records:
        said = twin.predict_one(x, with_dist=True)
        expected.append((said.mu, said.sigma))
        twin.learn_one(x, y)
    lines = home.lines("out/predictions.jsonl")
    assert [(line["prediction"], pytest.approx(line["std"], rel=1e-12)) for line in lines] == expected
    assert isinstance(plan.model, GaussianProcessRegressor)
    assert plan.model.state_digest() == twin.state_digest()


def test_mistakes_in_a_configuration_are_told_with_their_place() -> None:
    points: Any = {"streamkernel.gaussian_process.TestPointFunctions": {"points": []}}
    for arguments, message in (
        ({"noise": 0}, "noise: must be a finite number of at least 1e-06 times the largest"),
        ({"variance": points}, "points: must be a list of 1 to 4096 dicts"),
    ):
        with pytest.raises(ConfigError) as error:
            build_model([{"streamkernel.GaussianProcessRegressor": arguments}])
        assert message in str(error.value)


def test_in_a_pipeline_it_is_restored_by_its_constructors() -> None:
    points = [{"a": 1.0, 3: 2.0}]
    model = compose.Pipeline(
        preprocessing.StandardScaler(),
        GaussianProcessRegressor(n_features=4, variance=TestPointFunctions(points, 4, 2, 4), seed=1),
    )
    for x, y in _records(30):
        model.learn_one(x, y)
    again: Any = load_model(dump_model(model), model.clone())
    assert again["GaussianProcessRegressor"].state_digest() == model["GaussianProcessRegressor"].state_digest()
    forged = VarianceOperator()
    forged.batch_size = 0
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1"):
        pickle.loads(pickle.dumps(forged))
