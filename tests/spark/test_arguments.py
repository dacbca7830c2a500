"""Names and arguments: any name of a column is learned, and what cannot be is refused in one sentence on the driver."""

from pathlib import Path

import pytest
from pyspark.sql import functions as F
from river import linear_model

from streamkernel import KernelClassifier, KernelMultiTargetRegressor, KernelRegressor
from streamkernel.spark import learn_batch_of, learn_stream, predict_udf
from tests.spark.streams import BOUNDS, differences, records

NAMES = {"a": "a.b", "b": "`c`d", "c": "*", "d": "", "word": "Ünï word[0]", "y": "y.t"}


@pytest.fixture(scope="module")
def df(spark):
    return spark.createDataFrame(records(50))


def test_columns_may_have_any_name(spark):
    frame = records(500).rename(columns=NAMES)
    here, there = KernelRegressor(seed=1, dtype="float64"), KernelRegressor(seed=1, dtype="float64")
    learn_batch_of(spark.createDataFrame(frame), there, "y.t")
    here.batch_step(frame.drop(columns="y.t"), frame["y.t"])
    assert there.input_names == here.input_names
    assert differences(there, here)[0] < BOUNDS["float64"]


def test_columns_that_spark_cannot_tell_apart_are_refused(spark, df):
    for other in ("a", "A"):
        alike = df.select("a", F.col("b").alias(other), "y")
        with pytest.raises(
            ValueError, match=f"cannot tell the columns 'a', '{other}' apart by their names: rename one"
        ):
            learn_batch_of(alike, KernelRegressor(), "y")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert learn_batch_of(alike, KernelRegressor(), "y").n == 50
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("arguments", "kind", "told"),
    [
        ({"target": "y", "weight": "y"}, ValueError, "column 'y' is both target and weight"),
        ({"target": 3}, TypeError, "target must be a column name, a string, got int"),
        ({"target": "y", "inputs": "ab"}, TypeError, "inputs must be a list of column names, got 'ab'"),
        ({"target": "y", "inputs": [3]}, TypeError, "each of inputs must be a column name, a string, got int"),
        ({"target": "y", "inputs": ["a", "y"]}, ValueError, "column 'y' is both input and target"),
        ({"target": "y", "inputs": []}, ValueError, "there is no input: name at least one column"),
        ({"target": "y", "model": KernelRegressor}, TypeError, r"is the class KernelRegressor: pass an instance"),
        (
            {"target": "y", "model": KernelMultiTargetRegressor()},
            ValueError,
            "takes no batch steps, because they take one",
        ),
        ({"target": "y", "model": None}, ValueError, "NoneType takes no batch steps"),
    ],
)
def test_arguments_of_a_wrong_kind_are_refused(df, arguments, kind, told):
    with pytest.raises(kind, match=told):
        learn_batch_of(df, **{"model": KernelRegressor(), **arguments})


@pytest.mark.parametrize("made", ["current_timestamp()", "array(a)", "map('k', a)", "struct(a)", "cast('x' as binary)"])
def test_a_target_of_a_type_that_none_has_is_refused_before_any_job(df, made):
    kind = df.select(F.expr(made).alias("t")).schema["t"].dataType.simpleString()
    with pytest.raises(ValueError, match="column 'y' is of type") as caught:
        learn_batch_of(df.withColumn("y", F.expr(made)), KernelRegressor(), "y")
    assert str(caught.value) == f"column 'y' is of type {kind}: targets are numbers, booleans or strings"


def test_labels_are_no_decimals_and_weights_no_strings(df):
    decimal = df.withColumn("y", F.expr("cast(y as decimal(10, 2))"))
    with pytest.raises(ValueError, match=r"column 'y' is of type decimal\(10,2\), which a label cannot have"):
        learn_batch_of(decimal, KernelClassifier(), "y")
    assert learn_batch_of(decimal, KernelRegressor(), "y").n == 50
    with pytest.raises(ValueError, match="column 'word' is of type string: weights are numbers"):
        learn_batch_of(df, KernelRegressor(), "y", weight="word")


def test_data_frames_of_a_wrong_kind_are_refused(spark, df):
    with pytest.raises(TypeError, match=r"got pandas\.core\.frame\.DataFrame: for rows of this process"):
        learn_batch_of(records(5), KernelRegressor(), "y")
    with pytest.raises(TypeError, match=r"got builtins\.NoneType"):
        learn_stream(None, KernelRegressor(), "y", checkpoint_location="/nowhere")
    with pytest.raises(TypeError, match="got Column"):
        learn_batch_of(df, KernelRegressor(), F.col("y"))
    with pytest.raises(ValueError, match="is a stream: use learn_stream"):
        learn_batch_of(spark.readStream.format("rate").load(), KernelRegressor(), "value")


@pytest.mark.parametrize(
    "given", ["s3://bucket/state", Path("s3://bucket/state"), "hdfs:///state", "file://host/state"]
)
def test_a_checkpoint_is_a_directory_of_the_driver(spark, given):
    stream = spark.readStream.format("rate").load().withColumn("a", F.col("value"))
    with pytest.raises(ValueError, match="is a URI, and checkpoints of the model are local files"):
        learn_stream(stream, KernelRegressor(), "value", checkpoint_location="/nowhere", checkpoint=given)


def _trained(labels):
    model = KernelClassifier(seed=1)
    model.batch_step(records(len(labels)).drop(columns="y"), labels)
    return model


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (None, "NoneType is not an estimator of streamkernel"),
        (KernelRegressor, "the model is the class KernelRegressor: pass a trained instance"),
        (linear_model.LogisticRegression(), "LogisticRegression is not an estimator of streamkernel"),
    ],
)
def test_predictions_are_those_of_an_estimator(model, told):
    with pytest.raises(TypeError, match=told):
        predict_udf(model)


@pytest.mark.parametrize(
    ("model", "result", "told"),
    [
        (KernelRegressor(), "bogus", "result must be one of 'boolean', 'double', 'long', 'string', got 'bogus'"),
        (KernelRegressor(), "int", "got 'int'"),
        (KernelRegressor(), "", "got ''"),
        (KernelRegressor(), "long", "KernelRegressor predicts numbers, not long: set result='double'"),
        (_trained(["up", "down"]), "double", "the label 'down' cannot be of the type double: set result='string'"),
        (_trained([1, 2**70]), None, "the label 1180591620717411303424 cannot be of the type long"),
        (_trained([1, "down"]), None, "the labels are of the types int, str: set result"),
    ],
)
def test_predictions_of_a_type_that_cannot_be_are_refused(model, result, told):
    with pytest.raises(ValueError, match=told):
        predict_udf(model, result)


def test_inputs_beside_a_struct_are_refused(df):
    predict = predict_udf(KernelRegressor(seed=1))
    for columns in (["a"], ["a", "b"]):
        with pytest.raises(Exception, match=r"the inputs must be one column, a struct of them: predict\(F\.struct"):
            df.select(predict(*columns)).collect()
