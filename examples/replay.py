"""Replay a CSV file into a topic, again and again, at a steady rate.

    python -m examples.replay examples/data/bananas.csv bananas --servers 127.0.0.1:9092 --rate 500

Values are JSON: each cell a number where it is one, and a string otherwise or in a column named with --text. Ends at
SIGTERM, Ctrl-C or after --records, once the broker has what is on its way; a second signal does not wait for it.
"""

import argparse
import csv
import itertools
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import orjson
from kafka import KafkaProducer

__all__ = ["Replay", "rows"]


class Replay(threading.Thread):
    """Produces rows to a topic, at a steady rate.

    Parameters
    ----------
    servers
        Addresses of brokers.
    topic
        The topic.
    values
        The rows, in their order.
    rate
        Records a second.

    Attributes
    ----------
    produced
        How many records were handed to the producer.
    failure
        What ended it before its time; None where nothing did.

    """

    def __init__(self, servers: str, topic: str, values: Iterable[Mapping[str, object]], rate: float) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._topic = topic
        self._values = values
        self._rate = rate
        self._ended = threading.Event()
        self.produced = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._produce()
        except Exception as error:  # reported by the thread that joins this one
            self.failure = error

    def _produce(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._servers, linger_ms=5)
        start = time.monotonic()
        for row in self._values:
            # By the clock and not by a pause each: it catches up after a slow moment.
            ahead = start + self.produced / self._rate - time.monotonic()
            if self._ended.wait(max(ahead, 0)):
                break
            producer.send(self._topic, orjson.dumps(row))
            self.produced += 1
        producer.close()

    def stop(self) -> None:
        """Produce no more; the thread ends once the broker has what is on its way."""
        self._ended.set()


def rows(path: Path, text: Collection[str] = ()) -> Iterator[dict[str, float | str]]:
    """Read the rows of a CSV file; cells that are numbers become floats, except in the columns named text."""
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            yield {name: cell if name in text else _value(cell) for name, cell in row.items()}


def _value(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a CSV file with a header")
    parser.add_argument("topic")
    parser.add_argument("--servers", default="127.0.0.1:9092", help="addresses of brokers (127.0.0.1:9092)")
    parser.add_argument("--rate", type=float, default=500, help="records a second (500)")
    parser.add_argument("--records", type=int, help="how many (without end)")
    parser.add_argument("--text", action="append", default=[], metavar="COLUMN", help="a column that is text")
    options = parser.parse_args()
    if not options.rate > 0:
        parser.error(f"--rate must be above 0, got {options.rate:g}")
    if options.records is not None and options.records < 0:
        parser.error(f"--records must not be below 0, got {options.records}")
    try:
        if next(rows(options.file), None) is None:
            parser.error(f"{options.file} has no rows below its header")
    except (OSError, ValueError, csv.Error) as error:
        parser.error(f"{options.file} cannot be read: {error}")
    endless = itertools.cycle(rows(options.file, options.text))
    replay = Replay(options.servers, options.topic, itertools.islice(endless, options.records), options.rate)

    def stop(number: int, _: object) -> None:
        replay.stop()
        signal.signal(number, signal.SIG_DFL)  # the second one ends it at once

    # They do not raise: before Python 3.13, a thread whose join was interrupted cannot be waited for again.
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    replay.start()
    replay.join()
    print(f"{options.topic}: {replay.produced:,} records")
    if replay.failure is not None:
        print(f"{options.servers}: {replay.failure}", file=sys.stderr)
    return 0 if replay.failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
