"""The records of the chaos tests: the same in every run, each known by its key, its fate known beforehand."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import NamedTuple

from kafka import KafkaProducer

from streamkernel.connectors.encode import to_json

LEARNED, UNLABELED, SKIPPED = "learned", "unlabeled", "skipped"
"""Fates of a record; any other one is the reason in its dead letter."""

POISON = "poison"
"""The color of a record that kills the process."""

_PAUSE = 0.05


class Row(NamedTuple):
    """A record before it is produced; the key is its number in the stream."""

    key: bytes
    value: bytes | None  #: None for a tombstone
    fate: str

    @property
    def predicted(self) -> bool:
        """Whether a prediction is made for it."""
        return self.fate in (LEARNED, UNLABELED)

    @property
    def dead(self) -> bool:
        """Whether it becomes a dead letter."""
        return self.fate not in (LEARNED, UNLABELED, SKIPPED)


def rows(seed: int, poison: int | None = None) -> Iterator[Row]:
    """Make records without end: two rings to tell apart, and every kind that is not learned among them."""
    draw = random.Random(seed)
    number = 0
    while True:
        key = b"%d" % number
        kind = draw.random()
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        label = "yes" if (a * a + b * b < 1.2) != (draw.random() < 0.05) else "no"
        x = {"a": round(a, 6), "b": round(b, 6), "color": draw.choice(["red", "green", None])}
        if number == poison:
            yield Row(key, to_json({**x, "color": POISON, "y": label}), "kills_process")
        elif kind < 0.01:
            yield Row(key, b'{"a": 1.5, "b": ', "not_json")
        elif kind < 0.02:
            yield Row(key, to_json({**x, "a": {"nested": 1}, "y": label}), "nested")
        elif kind < 0.03:
            yield Row(key, None, SKIPPED)
        elif kind < 0.06:
            yield Row(key, to_json(x), UNLABELED)
        else:
            yield Row(key, to_json({**x, "y": label}), LEARNED)
        number += 1


class Feeding:
    """Something that is done again and again on a thread of its own, until it is stopped."""

    def __init__(self, pauses: Iterator[float]) -> None:
        self.sent = 0
        self._pauses = pauses
        self._failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._thread.start()

    def feed(self) -> None:
        """Put the next records where they go."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop, and raise what went wrong, if anything did."""
        self._stopping.set()
        self._thread.join()
        if self._failures:
            raise self._failures[0]

    def _run(self) -> None:
        try:
            for pause in self._pauses:
                if self._stopping.wait(pause):
                    return
                self.feed()
        except BaseException as error:
            self._failures.append(error)


class Feeder(Feeding):
    """Produces records steadily, through whatever happens to the broker."""

    def __init__(
        self, bootstrap: str, topic: str, source: Iterator[Row], partition: Callable[[int], int], rate: float
    ) -> None:
        self._topic, self._source, self._partition, self._rate = topic, source, partition, rate
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            linger_ms=5,
            reconnect_backoff_max_ms=200,
            # A broker that is down for long must not cost a record.
            delivery_timeout_ms=600_000,
            max_block_ms=600_000,
        )
        super().__init__(repeat(_PAUSE))

    def feed(self) -> None:
        for _ in range(max(1, round(self._rate * _PAUSE))):
            row = next(self._source)
            sent = self._producer.send(self._topic, row.value, key=row.key, partition=self._partition(self.sent))
            sent.add_errback(self._failures.append)
            self.sent += 1

    def stop(self) -> None:
        """Stop, when the broker has everything."""
        self._stopping.set()
        self._thread.join()
        try:
            self._producer.flush(timeout=120)
        finally:
            self._producer.close(timeout=5)
        super().stop()
