"""A batch step on Spark is that of one machine, however the rows are partitioned."""

import numpy as np
import pytest
from river.optim.losses import Huber

from streamkernel import (
    KernelClassifier,
    KernelDensityRatio,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
)
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian
from streamkernel.spark import learn_batch_of
from tests.spark.streams import BOUNDS, differences, learn_both, records

MODELS = {
    "dsg": KernelRegressor(seed=1, growth=DSG(), dtype="float64"),
    "udsg": KernelRegressor(seed=1, growth=UDSG(), dtype="float64"),
    "cdsg": KernelRegressor(seed=1, growth=CDSG(), dtype="float64"),
    "cdsg_longer": KernelRegressor(seed=1, growth=CDSG(cap=2.0), precondition=False, dtype="float64"),
    "cdsg_float32": KernelRegressor(seed=1),
    "plain": KernelRegressor(seed=1, precondition=False, dtype="float64"),
    "plain_float32": KernelRegressor(seed=1, precondition=False),
    "huber": KernelRegressor(seed=1, loss=Huber(1.0), max_features=192),
    "softmax": KernelClassifier(seed=1, dtype="float64"),
    "averaged": KernelClassifier(seed=1, growth=DSG(), blocks_per_step=3, average=True),
    "structured": KernelRegressor(seed=1, kernel=Gaussian(structured=True), blocks_per_step=3, max_features=512),
    "density_ratio": KernelDensityRatio(p="up", q="down", seed=1, dtype="float64"),
    "least_squares": KernelLeastSquaresRegressor(seed=1),
    "least_squares_labels": KernelLeastSquaresClassifier(seed=1),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model(spark, name):
    here, there = MODELS[name].clone(), MODELS[name].clone()
    target = "word" if name == "density_ratio" else "y"
    learn_both(spark, here, there, target, labels=isinstance(here, KernelClassifier | KernelLeastSquaresClassifier))
    largest, others = differences(there, here)
    assert largest < BOUNDS[getattr(here, "dtype", "float64")]
    assert others == []


def test_a_novelty_detector(spark):
    here, there = KernelNoveltyDetector(seed=1), KernelNoveltyDetector(seed=1)
    for number in range(2):
        frame = records(500, number).drop(columns="y")
        learn_batch_of(spark.createDataFrame(frame).repartition(3), there)
        here.batch_step(frame)
    assert differences(there, here)[0] < BOUNDS["float32"]
    assert there.n_flagged == here.n_flagged > 0


@pytest.mark.parametrize("partitions", [1, 20])
def test_any_partitioning_also_of_fewer_rows_than_partitions(spark, partitions):
    here, there = KernelRegressor(seed=1), KernelRegressor(seed=1)
    learn_both(spark, here, there, "y", partitions=partitions, sizes=(30, 300, 0, 1))
    largest, others = differences(there, here)
    assert largest < BOUNDS["float32"]
    assert others == []
    assert there.n_records == 331


def test_tallies_are_the_metrics_of_the_same_predictions(spark):
    model = KernelRegressor(seed=1)
    for number in range(2):
        frame = records(600, number)
        twin = model.clone(include_attributes=True)
        tally = learn_batch_of(spark.createDataFrame(frame).repartition(3), model, "y")
        predictions = np.array(twin.batch_step(frame.drop(columns="y"), frame["y"]).predictions)
        errors = frame["y"].to_numpy() - predictions
        assert tally.metric("mae") == pytest.approx(np.abs(errors).mean())
        assert tally.metric("rmse") == pytest.approx(np.sqrt((errors**2).mean()))
        assert tally.metric("r2") == pytest.approx(1 - (errors**2).mean() / frame["y"].var(ddof=0))
