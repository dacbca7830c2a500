"""A learning query: what ended it is one sentence, and its checkpoints are free for the next one however it ended."""

import json
import time

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from streamkernel import KernelRegressor
from streamkernel.daemon.base.errors import DirectoryInUseError
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.spark import learn_batch_of, learn_stream
from streamkernel.spark.failures import ExecutorError, SparkJobError
from streamkernel.spark.learner import MicroBatches
from streamkernel.spark.progress import BatchOrderError, MemoryProgress
from tests.spark.jobs import write_lines
from tests.spark.streams import records

SCHEMA = "a double, b double, c double, d double, word string, y double"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "0.json", records(60, 0))
    return tmp_path


def _stream(spark, folder):
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))


def _start(df, folder, model=None, **others):
    arguments = {
        "checkpoint_location": folder / "spark",
        "checkpoint": folder / "state",
        "trigger": {"availableNow": True},
        **others,
    }
    return learn_stream(df, model or KernelRegressor(seed=1), "y", **arguments)


def _learn(df, folder, model=None, **others):
    """The micro-batches that were learned."""
    reports = []
    _start(df, folder, model, watch=reports.append, **others).awaitTermination()
    return [report.batch for report in reports]


def test_a_query_that_does_not_start_holds_no_checkpoints(spark, folder):
    df = _stream(spark, folder)
    for trigger in ({"bogus": 1}, {"processingTime": "soon"}, {"processingTime": 3}, {}):
        with pytest.raises(ValueError, match="is not a trigger of Spark") as caught:
            _start(df, folder, trigger=trigger)
        assert "\n" not in str(caught.value)
    with pytest.raises(Exception, match="queryName"):
        _start(df, folder, query_name=3)
    with pytest.raises(SparkJobError, match="watermark") as caught:
        _start(df.groupBy("a").agg(F.sum("y").alias("y")), folder)  # only Spark finds that when it starts
    assert "\n" not in str(caught.value)
    assert _learn(df, folder) == [0]


def test_what_ended_a_query_is_a_sentence(spark, folder):
    rows = [{"a": 1.0, "y": 1.0}, {"a": "Infinity", "y": 2.0}]
    (folder / "in" / "0.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    df = _stream(spark, folder)
    query = _start(df, folder)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^input 'a' is infinite") as caught:
            query.awaitTermination()
        assert isinstance(caught.value.__cause__, StreamingQueryException)
        assert "\n" not in str(caught.value)

    @F.udf("double")
    def broken(_):
        raise KeyError("a secret")

    with pytest.raises(ExecutorError, match=r"^KeyError on an executor: 'a secret'"):
        _learn(df.withColumn("a", broken("a")), folder)
    other = spark.readStream.schema(SCHEMA).parquet(str(folder / "in"))
    with pytest.raises(SparkJobError, match=r"reading file .*in/0\.json: .*not a Parquet file") as caught:
        _learn(other, folder, checkpoint_location=folder / "other")
    assert "\n" not in str(caught.value)


def test_without_a_checkpoint_a_model_goes_on_where_it_is_in_the_same_process(spark, folder):
    model, df, failing = KernelRegressor(seed=1), _stream(spark, folder), [True]

    def watch(_):
        if failing:
            raise KeyError(failing.pop())

    with pytest.raises(KeyError):
        _start(df, folder, model, checkpoint=None, watch=watch).awaitTermination()
    assert _learn(df, folder, model, checkpoint=None) == []  # Spark repeats it
    write_lines(folder / "in" / "1.json", records(40, 1))
    assert _learn(df, folder, model, checkpoint=None) == [1]
    assert model.n_records == 100
    write_lines(folder / "in" / "2.json", records(10, 2))
    with pytest.raises(Exception, match="this model has learned none of the earlier ones"):
        _learn(df, folder, model.clone(), checkpoint=None)
    assert _learn(df, folder, model, checkpoint=None, checkpoint_location=folder / "other") == [0, 1, 2]


def test_checkpoints_are_free_after_a_query_that_was_ended_by_others(spark, folder):
    df = _stream(spark, folder)
    _start(df, folder, trigger=None).processAllAvailable()
    with pytest.raises(DirectoryInUseError):
        _start(df, folder, checkpoint_location=folder / "other")
    (active,) = spark.streams.active
    active.stop()
    query = _start(df, folder)
    assert query.awaitTermination(60) is True
    assert _learn(df, folder) == []


def test_a_model_that_a_query_learns_is_not_learned_by_another(spark, folder):
    model, df = KernelRegressor(seed=1), _stream(spark, folder)
    query = _start(df, folder, model, trigger=None, query_name="first")
    others = {"checkpoint": folder / "others", "checkpoint_location": folder / "other"}
    with pytest.raises(ValueError, match="the model is in use by the query first, which still runs"):
        _start(df, folder, model, **others)
    with pytest.raises(ValueError, match="the model is in use by the query first, which still runs"):
        learn_batch_of(spark.createDataFrame(records(5)), model, "y")
    query.stop()
    assert _learn(df, folder, model, checkpoint=None, checkpoint_location=folder / "other") == [0]


def test_a_micro_batch_of_no_known_query_is_not_learned(spark):
    """As where Python's threads are not pinned to those of Java."""
    model = KernelRegressor(seed=1)
    learn = MicroBatches(model, lambda _: iter([]), MemoryProgress(model), lambda df: df)
    with pytest.raises(BatchOrderError, match="unset PYSPARK_PIN_THREAD if it is false"):
        learn(spark.createDataFrame(records(5)), 0)
    assert model.n_records == 0


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "failing"])
def test_what_java_raises_in_a_micro_batch_reaches_spark_without_its_stack(spark, folder, is_stopped):
    """Spark matches it with a pattern that overflows on a long text: the query would end and say nothing."""

    def fail(_):
        thread = spark._jvm.java.lang.Thread
        if is_stopped:
            thread.currentThread().interrupt()
        thread.sleep(0 if is_stopped else -1)

    query = _start(_stream(spark, folder), folder, watch=fail)
    with pytest.raises(
        SparkJobError, match="sleep interrupted" if is_stopped else "timeout value is negative"
    ) as raised:
        query.awaitTermination(60)
    assert "\tat java.base/java.lang.Thread.sleep" not in str(raised.value.__cause__)
    assert "StackOverflowError" not in str(raised.value.__cause__)


def test_an_end_that_does_not_come_is_waited_for_as_long_as_asked(spark, folder):
    query = _start(_stream(spark, folder), folder, trigger=None)
    started = time.monotonic()
    assert query.awaitTermination(1.5) is False
    assert time.monotonic() - started >= 1.5
    with pytest.raises(ValueError, match="timeout must be a positive number of seconds, got 0"):
        query.awaitTermination(0)
    query.stop()
    query.stop()
    assert query.awaitTermination() is None


def test_a_query_ends_with_its_session(spark, folder):
    """The last one of this module, as it stops the session."""
    query = _start(_stream(spark, folder), folder, trigger=None)
    query.processAllAvailable()
    spark.stop()
    assert query.awaitTermination(120) is True
    query.stop()
    store = CheckpointStore(folder / "state")
    store.lock()
    store.close()
