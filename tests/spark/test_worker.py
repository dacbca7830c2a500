"""A worker's garbage collections, one after each of its tasks, pass over what it has imported."""

import gc

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from streamkernel import KernelRegressor
from streamkernel.spark import learn_batch_of, predict_udf
from tests.spark.streams import records


def _frozen(batches):
    """How many objects are left out of the collections of the worker that runs this task, and how many are not."""
    for _ in batches:
        pass
    yield pa.record_batch({"frozen": [gc.get_freeze_count()], "others": [len(gc.get_objects())]})


@pytest.mark.parametrize("task", ["step", "prediction"])
def test_what_was_imported_is_frozen_by_the_first_task(make_session, task):
    # One worker, which takes every task, and that of no other test.
    spark = make_session("local[1]", **{"spark.app.name": task})
    df = spark.createDataFrame(records(60, 0))
    model = KernelRegressor(seed=1)
    if task == "step":
        learn_batch_of(df, model, "y")
    else:
        df.select(predict_udf(model)(F.struct("a", "b"))).collect()
    (worker,) = spark.range(1).coalesce(1).mapInArrow(_frozen, "frozen long, others long").collect()
    assert worker.frozen > 50_000
    assert worker.others < worker.frozen
