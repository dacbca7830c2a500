"""The records of a trial: put where the daemon reads them, and what is to become of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tests.chaos.account import Place
from tests.chaos.intake import INTAKES, IntakeFeeder
from tests.chaos.settings import Setting
from tests.chaos.site import Site
from tests.chaos.stream import Feeder, Row, rows
from tests.kafka.producing import consume, produce


class TrialRecords:
    """The stream of a trial, in a topic or in what the setting has instead."""

    def __init__(self, site: Site, setting: Setting, topic: str, folder: Path, poison: int | None) -> None:
        self.expected: dict[Place, Row] = {}
        self.partitions = setting.partitions
        self.intake = INTAKES[setting.source](folder) if setting.source in INTAKES else None
        self._broker = site.broker
        self._topic = topic
        self._made: dict[bytes, Row] = {}
        self._rows = rows(0, poison)
        self._produced = 0
        self._feeder: Feeder | IntakeFeeder | None = None
        self._rereads = True
        if self.intake is None:
            self._broker.create_topic(topic, self.partitions)

    def produce(self, count: int, *, partition: int | None = None, keyless: bool = False, **options: Any) -> None:
        """Put the next records into the topic, in batches of their own; not while it is fed."""
        assert self._feeder is None, "the records would not be in order"
        if self.intake is not None:
            self._put(list(islice(self._with_value(), count)))
            return
        chunk = list(islice(self._with_value() if keyless else self._remember(), count))
        first = self._produced
        self._produced += count
        produce(
            self._broker.bootstrap,
            self._topic,
            [row.value for row in chunk],
            keys=None if keyless else lambda number: chunk[number].key,
            partition=lambda number: (first + number) % self.partitions if partition is None else partition,
            **options,
        )

    def made(self, key: bytes) -> Row:
        """Give the record that was made with a key."""
        return self._made[key]

    def replace(self, made: Sequence[Row]) -> None:
        """Note records that were produced beside those of `produce`, or instead of them, by their keys."""
        self._made |= {row.key: row for row in made}

    def add_partitions(self, count: int) -> None:
        """Let the topic of records have more partitions."""
        self.partitions += count
        with self._broker.admin() as admin:
            admin.create_partitions({self._topic: self.partitions})

    def recreate(self, **config: object) -> None:
        """Let the topic of records be one with settings of its own, before anything is in it."""
        self._broker.delete_topic(self._topic)
        self._broker.create_topic(self._topic, self.partitions, **config)

    def feed(self, rate: float) -> None:
        """Produce the next records steadily from now on, until `finish`; again does nothing."""
        if self._feeder is not None:
            return
        if self.intake is not None:
            self._feeder = IntakeFeeder(self._put, self._with_value(), rate)
            return
        first = self._produced
        self._feeder = Feeder(
            self._broker.bootstrap,
            self._topic,
            self._remember(),
            lambda number: (first + number) % self.partitions,
            rate,
        )

    def stop_feeding(self) -> None:
        """Wait until everything that was fed is there."""
        if self._feeder is not None:
            feeder, self._feeder = self._feeder, None
            feeder.stop()
            self._produced += feeder.sent

    def _remember(self) -> Iterator[Row]:
        for row in self._rows:
            self._made[row.key] = row
            if row.value is not None:
                self._made[row.value] = row  # for those without a key: the same value has the same fate
            yield row

    def _with_value(self) -> Iterator[Row]:
        """Yield the next records without tombstones, which only a topic has."""
        return (row for row in self._remember() if row.value is not None)

    def _put(self, some: Sequence[Row]) -> None:
        assert self.intake is not None
        self.expected.update(self.intake.put(some))

    def book(self, last: bool = False) -> None:
        """Read what was produced by now; `last`: the topic cannot be read any more after this."""
        if self.intake is not None or not self._rereads:
            return
        self._rereads = not last
        for partition, records in consume(self._broker.bootstrap, self._topic).items():
            for record in records:
                self.expected[partition, record.offset] = self._made[record.value if record.key is None else record.key]
