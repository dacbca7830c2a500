"""How long after a record is read others can read its line, and what that costs: a followed file and topics of Kafka.

    python -m benchmarks.output_latency [--seconds N] [--rate N] [--records N] [--runs N] [--singles N] [--out DIR]
    python -m benchmarks.output_latency --idle [--singles N]

Idle: one record comes after each random pause, and its line is due at once; `--idle` prints this part alone. Latency:
records come at a steady rate. A reader beside the daemon notes when their lines can be read (of a topic: when they are
committed), and the daemon's own histogram is read at the end. Cost: a backlog with `flush_seconds` 1 and with lines
that come with the checkpoints alone, in turns. Needs Java and Maven, as the tests do.
"""

import itertools
import json
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.command import asked
from benchmarks.processes import running
from benchmarks.report import publish, span, table
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from tests.kafka.broker import Broker
from tests.kafka.producing import produce
from tests.kafka.sinking import place_of

FEATURES = 512
FLUSH_SECONDS = 1.0
CHECKPOINTS_ALONE = 1e6
#: A line is due at once; 0 is no number that a configuration takes.
AT_ONCE = 0
#: The seconds between two records of an idle stream; how often a reader looks; and the aim for 99% of the lines.
IDLE, LOOK, AIM = (0.05, 0.15), 0.0002, 0.005
PLACES = {
    "a followed file to a file": ("file", "file"),
    "a watched directory to a file": ("directory", "file"),
    "a topic to a file": ("topic", "file"),
    "a followed file to a topic": ("file", "topic"),
    "a topic to a topic": ("topic", "transactions"),
}
#: The cases that measure latency and cost, too.
BOTH = ("a followed file to a file", "a topic to a topic")
CONFIG = """
source: {{{source}, target: label, target_type: bool}}
model:
  - streamkernel.KernelClassifier: {{max_features: {features}, seed: 1}}
predictions: {{{predictions}, flush_seconds: {flush_seconds}}}
dead_letters: {{kind: none}}
checkpoint: {{directory: {folder}/{output}-state, every_seconds: 5}}
metrics: {metrics}
"""


def rows(n_records: int) -> Iterator[dict[str, Any]]:
    """Eight numbers and a label each."""
    rng = np.random.default_rng(0)
    for row in rng.normal(size=(n_records, 8)).round(6).tolist():
        yield {**dict(zip("abcdefgh", row, strict=True)), "label": row[0] > 0}


class Place:
    """Where records come from, a file, a directory or a topic, and where lines go to.

    That is a file, or a topic, with or without transactions.
    """

    number = itertools.count()

    def __init__(self, folder: Path, broker: Broker, reads: str, writes: str) -> None:
        self.folder = folder
        self.broker = broker
        self.reads, self.writes = reads, writes
        self.live = ""

    def configure(self, source: str, flush_seconds: float, metrics: str = "null", follow: bool = False) -> str:
        """Write a configuration with an output of its own, and return that."""
        output = f"out-{next(self.number)}"
        topic = f"kind: kafka, bootstrap_servers: '{self.broker.bootstrap}', topic: "
        how = "watch: true" if self.reads == "directory" else f"follow: {json.dumps(follow)}"
        reads, writes = (
            f"kind: jsonl, path: {self.folder}/{source}, {how}",
            f"kind: jsonl, path: {self.folder}/{output}",
        )
        if self.reads == "topic":
            reads = f"{topic}{source}"
        if self.writes != "file":
            self.broker.create_topic(output)
            writes = f"{topic}{output}, transactional_id: {output if self.writes == 'transactions' else 'none'}"
        made = {
            "features": FEATURES,
            "folder": self.folder,
            "output": output,
            "flush_seconds": flush_seconds,
            "metrics": metrics,
        }
        (self.folder / "config.yaml").write_text(CONFIG.format(source=reads, predictions=writes, **made))
        return output

    def backlog(self, n_records: int) -> None:
        """Make the source of the runs that measure throughput."""
        if self.reads == "file":
            lines = (json.dumps(row) + "\n" for row in rows(n_records))
            (self.folder / "backlog").write_text("".join(lines))
        else:
            self.broker.create_topic("backlog")
            produce(self.broker.bootstrap, "backlog", rows(n_records))

    def feed(self, due: Iterable[float]) -> list[float]:
        """Append records at these numbers of seconds from now on, and return when each was there."""
        send, close = self._appender()
        times: list[float] = []
        start, when = time.time(), list(due)
        for seconds, row in zip(when, rows(len(when)), strict=True):
            time.sleep(max(0.0, start + seconds - time.time()))
            send(json.dumps(row).encode())
            times.append(time.time())
        close()
        return times

    def _appender(self) -> tuple[Callable[[bytes], Any], Callable[[], Any]]:
        if self.reads == "directory":
            return self._arrive, lambda: None
        if self.reads == "file":
            file = (self.folder / self.live).open("ab", buffering=0)
            return lambda line: file.write(line + b"\n"), file.close
        producer = KafkaProducer(bootstrap_servers=self.broker.bootstrap, linger_ms=0)
        return lambda value: producer.send(self.live, value).get(60), producer.close

    def _arrive(self, line: bytes) -> None:
        """Give a file with a line its name in the directory."""
        folder = self.folder / self.live
        part = folder / ".part"
        part.write_bytes(line + b"\n")
        part.rename(folder / f"{next(self.number)}.jsonl")

    def begin(self) -> None:
        """Make the empty source of a run that measures latency."""
        self.live = f"live-{next(self.number)}"
        if self.reads == "directory":
            (self.folder / self.live).mkdir()
        elif self.reads == "file":
            (self.folder / self.live).touch()
        else:
            self.broker.create_topic(self.live)

    def seen(self, output: str, n_lines: int, look: float = 0.005) -> list[float]:
        """Return when each line could be read, looking again after that number of seconds."""
        times: list[float] = []
        for count in self._arriving(output, look):
            times += count * [time.time()]
            if len(times) >= n_lines:
                break
        return times

    def _arriving(self, output: str, look: float) -> Iterator[int]:
        """Yield how many lines more there are, again and again."""
        if self.writes == "file":
            path = self.folder / output
            while not path.exists():
                time.sleep(0.01)
            with path.open("rb") as file:
                while True:
                    yield file.read().count(b"\n")
                    time.sleep(look)
        consumer = KafkaConsumer(bootstrap_servers=self.broker.bootstrap, isolation_level="read_committed")
        place = TopicPartition(output, 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        expected = 0
        while True:
            for records in consumer.poll(timeout_ms=1000 * look).values():
                offsets = [place_of(one)[1] for one in records]
                assert self.reads == "file" or offsets == [*range(expected, expected + len(records))]
                expected += len(records)
                yield len(records)


def quantile(text: str, share: float) -> float:
    """Return a quantile of the daemon's histogram, as Prometheus computes it."""
    pattern = r'streamkernel_output_latency_seconds_bucket\{le="([^"]+)",output="predictions"\} (\S+)'
    buckets = [(float(bound), float(count)) for bound, count in re.findall(pattern, text)]
    rank, below, under = share * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            return below if bound == float("inf") else below + (bound - below) * (rank - under) / (count - under)
        below, under = bound, count
    raise AssertionError("a histogram ends with all there is")


def sent_and_read(
    place: Place, flush_seconds: float, due: list[float], n_warm: int, look: float = 0.005
) -> tuple[list[float], str]:
    """Return how long after each record its line could be read, without the first ones, and the daemon's metrics."""
    place.begin()
    output = place.configure(place.live, flush_seconds, "{port: 0}", follow=True)
    with running(place.folder, "run") as program:
        program.wait_for("reading ")
        read: list[float] = []
        reader = threading.Thread(target=lambda: read.extend(place.seen(output, len(due), look)))
        reader.start()
        sent = place.feed(due)
        reader.join(120)
        text = program.metrics()
    return [there - gone for gone, there in zip(sent, read, strict=True)][n_warm:], text


def latency(place: Place, seconds: float, rate: int) -> list[str]:
    """Return median and 99% of the latency of a daemon that keeps up, by its own clock and as a reader sees it."""
    warm = int(2 * rate)
    due = [number / rate for number in range(warm + int(seconds * rate))]
    late, text = sent_and_read(place, FLUSH_SECONDS, due, warm)
    own = [quantile(text, share) for share in (0.5, 0.99)]
    return [f"{value:.2f}" for value in (*own, *np.quantile(late, (0.5, 0.99)))]


def idle(place: Place, n_records: int, n_warm: int = 40) -> list[str]:
    """Return median, 99% and the most milliseconds from a record's being there to its line, one record at a time."""
    due = np.cumsum(np.random.default_rng(1).uniform(*IDLE, n_warm + n_records)).tolist()
    late, _ = sent_and_read(place, AT_ONCE, due, n_warm, LOOK)
    return [f"{1000 * value:.1f}" for value in np.quantile(late, (0.5, 0.99, 1.0))]


def rate_of(place: Place, n_records: int, flush_seconds: float) -> tuple[float, float]:
    """Return the records a second of a run over the backlog, by the clock and by the processor."""
    place.configure("backlog", flush_seconds)
    plan = prepare(place.folder / "config.yaml")
    wall, cpu = time.perf_counter(), time.process_time()
    run(plan, fresh=True, max_records=n_records)
    return n_records / (time.perf_counter() - wall), n_records / (time.process_time() - cpu)


def cost(place: Place, n_records: int, runs: int) -> list[str]:
    """Return the rates with and without output in time, and their ratios: median, lowest and highest."""
    place.backlog(n_records)
    rate_of(place, min(n_records, 5000), FLUSH_SECONDS)  # fills the caches
    found: dict[float, list[tuple[float, float]]] = {FLUSH_SECONDS: [], CHECKPOINTS_ALONE: []}
    for number in range(runs):
        for seconds in list(found)[:: 1 if number % 2 else -1]:
            found[seconds].append(rate_of(place, n_records, seconds))
    timed, alone = found.values()
    ratios = [[a[which] / b[which] for a, b in zip(timed, alone, strict=True)] for which in (0, 1)]
    rates = [f"{statistics.median(wall for wall, _ in one):,.0f}" for one in (alone, timed)]
    return [*rates, *(span(one, ".3f") for one in ratios)]


def main() -> None:
    alone = {"action": "store_true", "help": "print the idle part alone"}
    options = asked(__doc__, seconds=60.0, rate=200, records=300_000, runs=5, singles=500, idle=alone)
    header = ["from and to", "median", "99%", "most"]
    late, costs, singles = [], [], []
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        for what, (reads, writes) in PLACES.items():
            folder = Path(name, what)
            folder.mkdir()
            place = Place(folder, broker, reads, writes)
            singles.append([what, *idle(place, options.singles)])
            if what in BOTH and not options.idle:
                late.append([what, *latency(place, options.seconds, options.rate)])
                costs.append([what, *cost(place, options.records, options.runs)])
    if options.idle:
        print(table(header, singles))
        return
    rates = ["records/s, with checkpoints alone", "records/s, with flush_seconds"]
    publish(
        options,
        "output_latency",
        "How late others can read a line",
        f"`KernelClassifier(max_features={FEATURES})`, `flush_seconds` {FLUSH_SECONDS:g}, a checkpoint every 5 s, "
        "topics with transactions and their broker on the same two cores.",
        "## An idle stream",
        f"{options.singles} records, one each {1000 * IDLE[0]:g} to {1000 * IDLE[1]:g} ms at random, `flush_seconds` "
        f"{AT_ONCE:g}. Milliseconds from the record's being there until its line could be read; the aim is 99% within "
        f"{1000 * AIM:g} ms.",
        table(header, singles),
        "## Latency",
        f"{options.rate} records a second for {options.seconds:g} s. By the daemon: from the reading of a record, "
        "`streamkernel_output_latency_seconds`. By a reader: from the record's being there until its line could be "
        "read, of a topic once it was committed. Seconds; the aim is 99% within "
        f"{FLUSH_SECONDS + 0.5:g} s.",
        table(["from and to", "median, by the daemon", "99%", "median, by a reader", "99%"], late),
        "## Cost",
        f"A backlog of {options.records:,} records; median (lowest to highest) of {options.runs} runs. A ratio is that "
        "of the rate with `flush_seconds` to the rate with lines that come with the checkpoints alone.",
        table(["from and to", *rates, "ratio by the clock", "ratio by the processor"], costs),
    )


if __name__ == "__main__":
    main()
