"""What Spark raises is told in one sentence: kind and message of an exception, the file that cannot be read."""

import os

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import functions as F

from streamkernel import KernelRegressor
from streamkernel.spark import learn_batch_of
from streamkernel.spark.failures import ExecutorError, SparkJobError, failure_of
from tests.spark.streams import records


class TroubleOfMine(Exception):
    pass


def _raising(error):
    @F.udf("double")
    def broken(_):
        raise error

    return broken


def _learn(df, model=None):
    return learn_batch_of(df, model or KernelRegressor(seed=1), "y")


@pytest.fixture(scope="module")
def df(spark):
    return spark.createDataFrame(records(20))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("secret-value"), "KeyError on an executor: 'secret-value'"),
        (
            ValueError("rows are bad:\n  row 3 of the file"),
            "ValueError on an executor: rows are bad: row 3 of the file",
        ),
        (TroubleOfMine("once: more"), "TroubleOfMine on an executor: once: more"),
        (StopAsyncIteration(), "StopAsyncIteration on an executor"),
    ],
)
def test_an_exception_of_a_udf_is_told_by_kind_and_message(df, error, told):
    with pytest.raises(ExecutorError) as caught:
        _learn(df.withColumn("a", _raising(error)("a")))
    assert str(caught.value) == told


@pytest.mark.parametrize("partitions", [2, 20])
def test_an_exception_of_the_library_has_its_whole_message(df, partitions):
    with pytest.raises(ValueError, match=r"^input 'a' is infinite"):
        _learn(df.withColumn("a", F.lit(float("inf"))).repartition(partitions))


def test_a_file_that_cannot_be_read_is_named(spark, tmp_path):
    spark.createDataFrame(records(20)).coalesce(1).write.parquet(str(tmp_path / "rows"))
    df = spark.read.parquet(str(tmp_path / "rows"))
    for path in (tmp_path / "rows").glob("*.parquet"):
        path.write_bytes(b"no such thing")
        path.with_name(f".{path.name}.crc").unlink()
    with pytest.raises(SparkJobError, match=r"reading file file:.*rows/part-.*parquet: .*not a Parquet file") as caught:
        _learn(df)
    _is_a_sentence(caught.value)


def test_what_java_raises_is_told_without_its_stack(df):
    with pytest.raises(SparkJobError, match=r"^Division by zero") as caught:
        _learn(df.withColumn("a", F.expr("cast(1 / (length(word) - length(word)) as double)")))
    _is_a_sentence(caught.value)


def test_a_worker_that_dies_is_told(df):
    dying = df.mapInArrow(lambda _: os._exit(3), df.schema)
    with pytest.raises(SparkJobError, match=r"^Python worker exited unexpectedly") as caught:
        _learn(dying)
    _is_a_sentence(caught.value)


def test_a_plan_is_not_shown(df):
    with pytest.raises(Exception, match="Project") as caught:
        df.select("nowhere")
    failure = failure_of(caught.value)
    assert "`nowhere` cannot be resolved" in str(failure)
    _is_a_sentence(failure)


def test_any_other_exception_is_given_back():
    error = KeyError("a")
    assert failure_of(error) is error
    assert str(failure_of(SystemExit(3))) == "SystemExit ended it: 3"


def _is_a_sentence(error):
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    for shown in ("org.apache", "SQLSTATE", "Traceback", "An error occurred while calling"):
        assert shown not in str(error)


def test_an_answer_of_java_that_was_cut_is_its_end():
    cut = Py4JError("An error occurred while calling o230.destroy")
    assert str(failure_of(cut)).startswith("Spark's Java process has ended")
    assert str(failure_of(Py4JError(f"{cut}. Trace:\npy4j.Py4JException: no such method"))).startswith(str(cut))
