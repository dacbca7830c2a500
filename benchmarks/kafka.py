"""The daemon on a real Kafka broker on this machine: records a second, lag and memory while it catches up.

    python -m benchmarks.kafka [--records N] [--runs N] [--out DIR]

A backlog of N records of twenty numbers in one partition, JSON. Beside the daemon: kafka-python's poll alone, and with
orjson. Needs Java and Maven, as the tests do.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# NumPy reads these when it is imported, here and in the processes started from here.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import numpy as np
import orjson
from kafka import KafkaConsumer, TopicPartition

from benchmarks.report import machine, table, write
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
checkpoint: {{directory: {folder}/state}}
metrics: {{port: 0}}
"""


class Sample(NamedTuple):
    """The daemon at one moment: records consumed by this process, lag, resident memory in MB."""

    seconds: float
    consumed: float
    lag: float
    memory: float


class Run(NamedTuple):
    """A run: records a second between the first and the last sample that moved, CPU seconds, and the samples."""

    rate: float
    cpu: float
    samples: list[Sample]


def records(n_records: int) -> Iterator[dict[str, Any]]:
    """Twenty numbers and a non-linear label each."""
    rng = np.random.default_rng(0)
    for _ in range(0, n_records, 10_000):
        X = rng.normal(size=(min(10_000, n_records), len(INPUTS))).round(6)
        labels = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).tolist()
        for row, label in zip(X.tolist(), labels, strict=True):
            yield {**dict(zip(INPUTS, row, strict=True)), "label": label}


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


def sourced(bootstrap: str, topic: str, n_records: int) -> float:
    """Records a second that our source gives: decoded, checked, with their positions."""
    with KafkaSource(topic, bootstrap, target="label", target_type="bool") as source:
        source.open()
        seen, start = 0, time.perf_counter()
        while seen < n_records:
            seen += len(source.poll(2000, 0.1))
        return seen / (time.perf_counter() - start)


def daemon(broker: Broker, topic: str, n_records: int, output: str | None, folder: Path) -> Run:
    """The daemon from the first record of the backlog to the last, watched by its own metrics."""
    config = folder / "kafka.yaml"
    # Runs come one after the other, and write the same records' lines each time.
    to = f"kind: kafka, bootstrap_servers: {broker.bootstrap}, topic: {output}, existing: append"
    predictions = f"{{{to}}}" if output else "null"
    config.write_text(
        CONFIG.format(
            bootstrap=broker.bootstrap, topic=topic, features=FEATURES, predictions=predictions, folder=folder
        )
    )
    command = [sys.executable, "-m", "streamkernel", "run", str(config), "--fresh", "--max-records", str(n_records)]
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        samples: list[Sample] = []
        start = time.perf_counter()
        while process.poll() is None:
            sample = _sample((folder / "log").read_text(), process.pid, time.perf_counter() - start)
            if sample is not None:
                samples.append(sample)
            time.sleep(0.1)
        assert process.returncode == 0, (folder / "log").read_text()[-2000:]
    cpu = os.times().children_user + os.times().children_system
    moving = [sample for sample in samples if WARM <= sample.consumed < n_records]
    first, last = moving[0], moving[-1]
    return Run((last.consumed - first.consumed) / (last.seconds - first.seconds), cpu, samples)


def _sample(log: str, pid: int, seconds: float) -> Sample | None:
    mark = "serving metrics at "
    if mark not in log:
        return None
    url = log.partition(mark)[2].split()[0]
    try:
        text = urllib.request.urlopen(url, timeout=1).read().decode()
        memory = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except OSError:  # it ends
        return None
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    lags = [float(value) for name, value in values.items() if name.startswith("streamkernel_consumer_lag_records{")]
    if not lags:
        return None
    consumed = float(values["streamkernel_records_consumed_total"])
    return Sample(seconds, consumed, sum(lags), int(memory) * os.sysconf("SC_PAGE_SIZE") / 1e6)


def spread(values: Sequence[float]) -> str:
    """Median, lowest and highest."""
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    n = options.records
    rates: dict[str, list[float]] = defaultdict(list)
    watched: list[Run] = []
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        folder = Path(name)
        broker.create_topic("backlog")
        produce(broker.bootstrap, "backlog", records(n))
        size = sum(len(json.dumps(record, separators=(",", ":"))) for record in records(1000)) / 1000
        for number in range(options.runs):
            rates["kafka-python's poll, bytes"].append(polled(broker.bootstrap, "backlog", n, decode=False))
            rates["kafka-python's poll and orjson"].append(polled(broker.bootstrap, "backlog", n, decode=True))
            rates["our source: decoded, checked, with positions"].append(sourced(broker.bootstrap, "backlog", n))
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
    write(
        options.out / "kafka.md",
        "\n\n".join(
            [
                "# The daemon on Kafka",
                f"`python -m benchmarks.kafka` on {machine()}; a backlog of {n:,} records of {len(INPUTS)} numbers "
                f"({size:.0f} bytes of JSON) in one partition, the broker (Apache Kafka, one node) on the same two "
                f"cores; `KernelClassifier(max_features={FEATURES}, precondition=False)`, checkpoints and metrics on; "
                f"wall clock, median (lowest to highest) of {options.runs} runs.",
                table(["what", "records/s"], [[what, spread(values)] for what, values in rates.items()]),
                f"While it catches up, `records_consumed_total` and `consumer_lag_records` of one scrape add up to the "
                f"{n:,} records to within {off:,.0f}; from a fifth of the way to nine tenths resident memory grows by "
                f"{growth:.1f} MB at most.",
            ]
        ),
    )


if __name__ == "__main__":
    main()
