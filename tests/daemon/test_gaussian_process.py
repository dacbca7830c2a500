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
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator


def _records(n: int) -> list[tuple[dict[str, float], float]]:
    draw = random.Random(7)
    xs = [{"a": draw.gauss(0, 1), "b": draw.gauss(0, 1)} for _ in range(n)]
    return [(x, math.sin(2 * x["a"]) + x["b"]) for x in xs]


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
