"""The command `streamkernel spark` on a topic of Kafka, in turns with the daemon, from one checkpoint."""

import json

import pytest

from streamkernel.daemon.base.errors import UnfitError
from streamkernel.daemon.run_state.models import published_entry
from tests.kafka.producing import consume, produce
from tests.spark.jobs import Job
from tests.spark.kafka_jars import kafka_jars
from tests.spark.streams import records

MODEL = [{"streamkernel.KernelRegressor": {"seed": 1}}]


@pytest.fixture(scope="module")
def spark(make_session):
    """A session that knows Kafka."""
    return make_session("local[2]", **{"spark.jars": kafka_jars()})


def _produce(cluster, name, n, seed):
    frame = records(n, seed)
    rows = [{key: value for key, value in row.items() if value == value} for row in frame.to_dict("records")]
    produce(cluster.bootstrap, name, rows, partition=lambda number: number % 2)


@pytest.fixture
def job(tmp_path, broker, topic):
    name = topic(partitions=2)
    source = {
        "kind": "kafka",
        "topic": name,
        "bootstrap_servers": broker.bootstrap,
        "target": "y",
        "target_type": "float",
    }
    made = Job(tmp_path, source, MODEL, kafka_jars(), predictions={"kind": "none"})
    made.topic = name
    return made


def _offsets(job):
    return {partition: offset for _, partition, offset in job.checkpoint().header["source"]["positions"]}


def test_job_and_daemon_go_on_from_each_other(job, broker, spark):
    """Counters and positions are the same for both, also from another checkpoint location of Spark's."""
    _produce(broker, job.topic, 600, 0)
    job.learn(spark)
    assert (job.account["learned"], _offsets(job)) == (600, {0: 300, 1: 300})

    _produce(broker, job.topic, 200, 1)
    status, printed = job.run("--max-records", "200", command="run")
    assert status == 0, printed
    assert (job.account["learned"], _offsets(job)) == (800, {0: 400, 1: 400})

    # Spark's own log is behind: it reads again what the daemon has learned, which is passed over.
    _produce(broker, job.topic, 100, 2)
    job.learn(spark)
    assert (job.account["learned"], _offsets(job)) == (900, {0: 450, 1: 450})
    assert published_entry(job.checkpoint().header)["n_records"] == 900

    _produce(broker, job.topic, 100, 3)
    job.learn(spark, location=f"file://{job.folder}/other")
    assert (job.account["learned"], _offsets(job)) == (1000, {0: 500, 1: 500})


def test_a_location_that_has_read_further_than_the_model_is_refused(job, broker, spark):
    _produce(broker, job.topic, 400, 0)
    job.learn(spark)
    for checkpoint in job.state.glob("checkpoint-*.skc"):
        checkpoint.unlink()
    with pytest.raises(UnfitError, match="has no model that has learned any"):
        job.learn(spark)


def test_predictions_are_written_at_least_once(job, broker, topic, spark):
    lines = topic()
    text = job.config.read_text()
    section = json.dumps({"kind": "kafka", "topic": lines, "bootstrap_servers": broker.bootstrap})
    job.config.write_text(text.replace("predictions:\n  kind: none", f"predictions: {section}"))
    _produce(broker, job.topic, 300, 0)
    status, _ = job.run("--until-end", crash="batch-learned:1")  # predictions are out, and the step is lost
    assert status == -9
    job.learn(spark)
    assert job.account["learned"] == 300
    written = [json.loads(record.value) for found in consume(broker.bootstrap, lines).values() for record in found]
    places = [(line["position"]["partition"], line["position"]["offset"]) for line in written]
    assert set(places) == {(partition, offset) for partition in range(2) for offset in range(150)}
    assert len(places) == 600
