"""Streaming data frames: each micro-batch is learned once, by any query; and predictions as a column."""

import numpy as np
import pytest
from pyspark.sql import functions as F
from river import preprocessing

from streamkernel import AdaptiveKernelRegressor, KernelClassifier, KernelLeastSquaresRegressor, KernelRegressor
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.spark import learn_batch_of, learn_stream, predict_udf
from tests.spark.jobs import write_lines
from tests.spark.streams import BOUNDS, differences, records

SCHEMA = "a double, b double, c double, d double, word string, y double"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "0.json", records(400, 0))
    return tmp_path


def _learn(spark, folder, model, location="spark", **others):
    """Learn what is there, a file a micro-batch, and give the reports."""
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    reports = []
    query = learn_stream(
        stream,
        model,
        "y",
        checkpoint_location=folder / location,
        checkpoint=folder / "state",
        trigger={"availableNow": True},
        watch=reports.append,
        **others,
    )
    query.awaitTermination()
    return reports


def test_micro_batches_are_learned_once_and_a_new_process_goes_on(spark, folder):
    here = KernelRegressor(seed=1, dtype="float64")
    there = here.clone()
    (report,) = _learn(spark, folder, there)
    assert (report.batch, report.sums.n_learned, there.n_records) == (0, 400, 400)
    write_lines(folder / "in" / "1.json", records(300, 1))
    again = here.clone()  # as a new process would make it
    (report,) = _learn(spark, folder, again)
    assert (report.batch, report.sums.n_learned, again.n_records) == (1, 300, 700)
    assert _learn(spark, folder, here.clone()) == []
    for number, n in enumerate((400, 300)):
        frame = records(n, number)
        here.batch_step(frame.drop(columns="y"), frame["y"])
    largest, others = differences(again, here)
    assert largest < BOUNDS["float64"]
    assert others == []
    header = CheckpointStore(folder / "state").newest().header
    assert (header["source"]["account"]["learned"], header["spark"]["batch"]) == (700, 1)


def test_a_micro_batch_that_spark_repeats_is_passed_over(spark, folder):
    """As after a kill between our checkpoint and Spark's commit."""
    _learn(spark, folder, KernelRegressor(seed=1))
    for name in ("0", ".0.crc"):
        (folder / "spark" / "commits" / name).unlink(missing_ok=True)
    model = KernelRegressor(seed=1)
    assert _learn(spark, folder, model) == []
    assert model.n_records == 400


def test_a_checkpoint_opens_as_the_initial_model_of_a_daemon(spark, folder):
    from streamkernel.daemon.run_state.trained import load_trained

    model = KernelRegressor(seed=1)
    _learn(spark, folder, model)
    trained = load_trained(CheckpointStore(folder / "state").newest(), KernelRegressor(seed=1))
    assert trained.records == 400
    assert trained.model.state_digest() == model.state_digest()


def test_arguments_that_cannot_be_are_refused(spark):
    df = spark.createDataFrame(records(5))
    with pytest.raises(ValueError, match="has trees and memories"):
        learn_batch_of(df, AdaptiveKernelRegressor(), "y")
    with pytest.raises(ValueError, match="Pipeline takes no batch steps"):
        learn_batch_of(df, preprocessing.StandardScaler() | KernelRegressor(), "y")
    with pytest.raises(ValueError, match="there is no column 'z'"):
        learn_batch_of(df, KernelRegressor(), "z")
    with pytest.raises(ValueError, match="target must name a column"):
        learn_batch_of(df, KernelRegressor())
    with pytest.raises(ValueError, match="is not a stream"):
        learn_stream(df, KernelRegressor(), "y", checkpoint_location="/nowhere")


def test_weights_and_chosen_inputs(spark):
    frame = records(500)
    frame["w"] = np.where(frame["a"] > 0, 2.0, 0.0)
    here, there = KernelRegressor(seed=1, dtype="float64"), KernelRegressor(seed=1, dtype="float64")
    learn_batch_of(spark.createDataFrame(frame), there, "y", weight="w", inputs=["b", "a"])
    here.batch_step(frame[["b", "a"]], frame["y"], frame["w"].tolist())
    assert differences(there, here)[0] < BOUNDS["float64"]
    assert there.input_names == here.input_names


@pytest.mark.parametrize("model", [KernelRegressor(seed=1), KernelLeastSquaresRegressor(seed=1)])
def test_predictions_of_numbers(spark, model):
    frame = records(500)
    model = model.clone()
    model.batch_step(frame.drop(columns="y"), frame["y"])
    inputs = [name for name in frame.columns if name != "y"]
    df = spark.createDataFrame(frame).withColumn("p", predict_udf(model)(F.struct(*inputs)))
    found = df.select("y", "p").toPandas().sort_values("y")["p"].to_numpy()
    expected = frame.assign(p=model.predict_many(frame[inputs])).sort_values("y")["p"].to_numpy()
    assert found == pytest.approx(expected, rel=1e-5)


def test_predictions_of_labels(spark):
    frame = records(500, labels=True)
    model = KernelClassifier(seed=1)
    inputs = [name for name in frame.columns if name != "y"]
    df = spark.createDataFrame(frame)
    assert df.select(predict_udf(model)(F.struct(*inputs)).alias("p")).distinct().collect()[0].p is None
    model.batch_step(frame[inputs], frame["y"])
    counts = df.groupBy(predict_udf(model)(F.struct(*inputs)).alias("p")).count().collect()
    expected = frame.assign(p=model.predict_many(frame[inputs])).groupby("p").size()
    assert {row.p: row["count"] for row in counts} == expected.to_dict()
