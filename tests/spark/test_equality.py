"""A batch step on Spark is that of one machine, however the rows are partitioned."""

import numpy as np
import pytest
from river.optim.losses import Huber

from streamkernel import KernelClassifier, KernelNoveltyDetector, KernelRegressor
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.spark import learn_batch_of
from tests.spark.streams import differences, records

GROWTHS = [DSG(), UDSG(), CDSG()]
#: Of arrays, by dtype; what is tied within that may be decided otherwise.
BOUNDS = {"float64": 1e-6, "float32": 1e-4}


def _learn_both(spark, here, there, target, labels, partitions, sizes=(600, 500)):
    for number, n in enumerate(sizes):
        frame = records(n, number, labels)
        data = spark.createDataFrame(frame if n else records(1)).limit(n).repartition(partitions)
        tally = learn_batch_of(data, there, target)
        result = here.batch_step(frame.drop(columns="y"), *([] if target is None else [frame["y"].tolist()]))
        assert tally.n == n
        if np.isfinite(result.losses).all():
            assert tally.mean_loss == pytest.approx(result.losses.mean(), rel=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("growth", GROWTHS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("precondition", [True, False], ids=["preconditioned", "plain"])
def test_a_regressor(spark, dtype, growth, precondition):
    here, there = (KernelRegressor(growth=growth, dtype=dtype, precondition=precondition, seed=1) for _ in range(2))
    _learn_both(spark, here, there, "y", labels=False, partitions=3)
    largest, others = differences(there, here)
    assert largest < BOUNDS[dtype]
    assert others == []


@pytest.mark.parametrize(
    "model",
    [
        KernelClassifier(seed=1),
        KernelClassifier(seed=1, growth=DSG(), blocks_per_step=3, average=True),
        KernelRegressor(seed=1, loss=Huber(1.0), max_features=192),
    ],
    ids=["softmax", "averaged", "huber"],
)
def test_other_models(spark, model):
    here, there = model.clone(), model.clone()
    _learn_both(spark, here, there, "y", isinstance(model, KernelClassifier), partitions=5)
    largest, others = differences(there, here)
    assert largest < BOUNDS["float32"]
    assert others == []


def test_a_novelty_detector(spark):
    here, there = KernelNoveltyDetector(seed=1), KernelNoveltyDetector(seed=1)
    for number in range(3):
        frame = records(800, number).drop(columns="y")
        learn_batch_of(spark.createDataFrame(frame).repartition(3), there)
        here.batch_step(frame)
    assert differences(there, here)[0] < BOUNDS["float32"]
    assert there.n_flagged == here.n_flagged > 0


@pytest.mark.parametrize("partitions", [1, 2, 40])
def test_any_partitioning_also_of_fewer_rows_than_partitions(spark, partitions):
    here, there = KernelRegressor(seed=1), KernelRegressor(seed=1)
    _learn_both(spark, here, there, "y", labels=False, partitions=partitions, sizes=(30, 600, 25, 0, 1))
    largest, others = differences(there, here)
    assert largest < BOUNDS["float32"]
    assert others == []
    assert there.n_records == 656
