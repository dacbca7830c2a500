"""The daemon on a real Kafka broker on this machine: records a second, lag and memory while it catches up.

    python -m benchmarks.kafka [--records N] [--runs N] [--batch BYTES] [--out DIR]

A backlog of N records of twenty numbers in one partition, JSON, in batches of at most BYTES. Beside the daemon:
kafka-python's poll alone, and with orjson; our poll, which makes columns; librdkafka's, where confluent-kafka is
installed. Needs Java and Maven, as the tests do.
"""

import contextlib
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from kafka import KafkaConsumer, TopicPartition

from benchmarks.command import asked
from benchmarks.processes import resident, running
from benchmarks.report import publish, span, table
from benchmarks.waves import waves
from streamkernel.connectors.kafka.base.options import client_settings
from streamkernel.connectors.kafka.base.topic import KafkaTopic
from streamkernel.connectors.kafka.reading.source import KafkaSource
from tests.kafka.broker import Broker
from tests.kafka.producing import produce

FEATURES = 512
INPUTS = [f"x{number:02d}" for number in range(20)]
WARM = 1000
CONFIG = """
source:
  kind: kafka
  bootstrap_servers: {bootstrap}
  topic: {topic}
  target: label
  target_type: bool
model:
  - streamkernel.KernelClassifier: {{max_features: {features}, precondition: false, seed: 1}}
predictions: {predictions}
dead_letters: {{kind: none}}
checkpoint: {{directory: state}}
metrics: {{port: 0}}
"""


class Sample(NamedTuple):
    """The daemon at one moment: records consumed by this process, lag, resident memory in MB."""

    seconds: float
    consumed: float
    lag: float
    memory: float


class Run(NamedTuple):
    """A run: records a second between the first and the last sample that moved, and the samples."""

    rate: float
    samples: list[Sample]


def records(n_records: int) -> Iterator[dict[str, Any]]:
    """Yield twenty numbers and a non-linear label each."""
    return ({**x, "label": y} for x, y in waves(n_records, INPUTS, 6))


def polled(bootstrap: str, topic: str, n_records: int, decode: bool) -> float:
    """Records a second that kafka-python gives, as bytes or decoded."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="none", max_poll_records=5000
    )
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek(place, 0)
    seen, start = 0, time.perf_counter()
    while seen < n_records:
        for some in consumer.poll(timeout_ms=100).values():
            seen += len(some)
            if decode:
                for record in some:
                    orjson.loads(record.value)
    seconds = time.perf_counter() - start
    consumer.close()
    return seen / seconds


def columned(bootstrap: str, topic: str, n_records: int) -> float:
    """Records a second that the topic under our source gives, in columns."""
    safe = {"enable_auto_commit": False, "auto_offset_reset": "none", "group_id": None}
    reading = KafkaTopic(topic, client_settings(bootstrap, {"isolation_level": "read_committed"}) | safe)
    reading.add({0: 0})
    seen, start = 0, time.perf_counter()
    while seen < n_records:
        seen += sum(map(len, reading.poll(0.1).values()))
    seconds = time.perf_counter() - start
    reading.close()
    return seen / seconds


def consumed(bootstrap: str, topic: str, n_records: int) -> float:
    """Records a second that librdkafka gives: the value and the offset of each."""
    confluent = import_module("confluent_kafka")
    # It wants a group even where partitions are assigned, and leaves checksums out unless told.
    settings = {"group.id": "none", "enable.auto.commit": False, "check.crcs": True}
    consumer = confluent.Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([confluent.TopicPartition(topic, 0, 0)])
    seen, start = 0, time.perf_counter()
    while seen < n_records:
        seen += len([(message.value(), message.offset()) for message in consumer.consume(10_000, 0.1)])
    seconds = time.perf_counter() - start
    consumer.close()
    return seen / seconds


def sourced(bootstrap: str, topic: str, n_records: int) -> float:
    """Records a second that our source gives: decoded, checked, with their positions."""
    with KafkaSource(topic, bootstrap, target="label", target_type="bool") as source:
        source.open()
        seen, start = 0, time.perf_counter()
        while seen < n_records:
            seen += len(source.poll(2000, 0.1))
        return seen / (time.perf_counter() - start)


def clients() -> dict[str, Callable[[str, str, int], float]]:
    """Return what reads the topic in this process, by what it gives."""
    found: dict[str, Callable[[str, str, int], float]] = {
        "kafka-python's poll, bytes": partial(polled, decode=False),
        "kafka-python's poll and orjson": partial(polled, decode=True),
    }
    if find_spec("confluent_kafka"):
        found["librdkafka's consume: values and offsets"] = consumed
    return found | {
        "our poll of kafka-python: columns": columned,
        "our source: decoded, checked, with positions": sourced,
    }


def daemon(broker: Broker, topic: str, n_records: int, output: str | None, folder: Path) -> Run:
    """Run the daemon from the first record of the backlog to the last, and watch its metrics."""
    # Runs come one after the other, and write the same records' lines each time.
    to = f"kind: kafka, bootstrap_servers: {broker.bootstrap}, topic: {output}, existing: append"
    predictions = f"{{{to}}}" if output else "null"
    config = CONFIG.format(bootstrap=broker.bootstrap, topic=topic, features=FEATURES, predictions=predictions)
    samples: list[Sample] = []
    start = time.perf_counter()
    with running(folder, "run", "--fresh", "--max-records", str(n_records), config=config) as program:
        program.wait_for("serving metrics at ")
        while program.alive:
            with contextlib.suppress(OSError, LookupError):  # it ends, or has no lag yet
                samples.append(_sample(program.metrics(), program.pid, time.perf_counter() - start))
            time.sleep(0.1)
        assert program.process.returncode == 0, program.log[-2000:]
    moving = [sample for sample in samples if WARM <= sample.consumed < n_records]
    first, last = moving[0], moving[-1]
    return Run((last.consumed - first.consumed) / (last.seconds - first.seconds), samples)


def _sample(text: str, pid: int, seconds: float) -> Sample:
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    lags = [float(value) for name, value in values.items() if name.startswith("streamkernel_consumer_lag_records{")]
    if not lags:
        raise LookupError("no lag")
    return Sample(seconds, float(values["streamkernel_records_consumed_total"]), sum(lags), resident(pid))


def main() -> None:
    options = asked(__doc__, records=1_000_000, runs=3, batch=1 << 18)
    n = options.records
    rates: dict[str, list[float]] = defaultdict(list)
    costs: dict[str, list[float]] = defaultdict(list)
    watched: list[Run] = []
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        folder = Path(name)
        broker.create_topic("backlog")
        produce(broker.bootstrap, "backlog", records(n), batch_size=options.batch)
        size = sum(len(json.dumps(record, separators=(",", ":"))) for record in records(1000)) / 1000
        for number in range(options.runs):
            for what, read in clients().items():
                before = time.process_time()
                rates[what].append(read(broker.bootstrap, "backlog", n))
                costs[what].append((time.process_time() - before) / n * 1e6)
            watched.append(daemon(broker, "backlog", n, None, folder))
            rates["the daemon: predicted and learned (target 30,000)"].append(watched[-1].rate)
            output = f"predictions-{number}"
            broker.create_topic(output)
            watched.append(daemon(broker, "backlog", n, output, folder))
            rates["the same, every prediction to a topic (target 12,000)"].append(watched[-1].rate)
            assert broker.end_offsets(output)[0] >= n, "a prediction is missing"
    off = max(abs(sample.consumed + sample.lag - n) for run in watched for sample in run.samples)
    tenths = [[run.samples[len(run.samples) * i // 10] for i in (2, 9)] for run in watched]
    growth = max(late.memory - early.memory for early, late in tenths)
    publish(
        options,
        "kafka",
        "The daemon on Kafka",
        f"A backlog of {n:,} records of {len(INPUTS)} numbers ({size:.0f} bytes of JSON) in one partition, in batches "
        f"of at most {options.batch:,} bytes, the broker (Apache Kafka, one node) on the same two cores; "
        f"`KernelClassifier(max_features={FEATURES}, precondition=False)`, checkpoints and metrics on; wall clock, "
        f"and CPU of this process, median (lowest to highest) of {options.runs} runs.",
        table(
            ["what", "records/s", "CPU, µs a record"],
            [[what, span(values), span(costs[what], ".1f") if what in costs else ""] for what, values in rates.items()],
        ),
        "While it catches up, `records_consumed_total` and `consumer_lag_records` of one scrape add up to the "
        f"{n:,} records to within {off:,.0f}; from a fifth of the way to nine tenths resident memory grows by "
        f"{growth:.1f} MB at most.",
    )


if __name__ == "__main__":
    main()
