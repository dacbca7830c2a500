"""One trial: a known stream, a daemon that something happens to, and the account at the end."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.monitoring.describe import describe
from tests.chaos.account import Findings, Line, Place, account, compare, listen, read_file, read_topic
from tests.chaos.daemons import Daemon, Sabotage, until
from tests.chaos.settings import Setting
from tests.chaos.site import Site
from tests.chaos.stream import Feeder, Row, rows
from tests.kafka.producing import consume, produce

__all__ = ["Trial"]

_MODEL = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]
_MOST_TOLD = 4000
_LOOKS = 5


class Trial:
    """A stream, its topics, a configuration, and the daemons that ran on it one after the other.

    A context manager: it leaves no process of its own, and the site well.

    Parameters
    ----------
    site
        Where it takes place.
    setting
        What is configured.
    draw
        Random moments come from it.
    long
        Whether to take the time that is promised to operators, and not just enough to show it.
    by_network
        Whether the daemon reaches the broker through the site's network.
    poison
        The number of a record that kills the process.
    sections
        Further sections of the configuration, or others.
    source
        Further settings of the source.

    Attributes
    ----------
    topics
        The names of the topics for ``"records"``, ``"predictions"`` and ``"dead_letters"``.
    daemons
        Every life.
    expected
        What was produced, by its place, as far as `book` read it.
    partitions
        How many the topic of records has by now.
    says
        A pattern that a line of the log must hold, where it is only known now; None: that of the failure.
    stack
        What is closed with the trial.

    """

    def __init__(
        self,
        site: Site,
        setting: Setting,
        draw: random.Random,
        *,
        long: bool = False,
        by_network: bool = False,
        poison: int | None = None,
        sections: dict[str, Any] | None = None,
        source: dict[str, Any] | None = None,
    ) -> None:
        self.site, self.setting, self.draw, self.long = site, setting, draw, long
        number = site.number()
        self.folder = site.folder / f"trial-{number}"
        self.folder.mkdir()
        self.topics = {key: f"{key}-{number}" for key in ("records", "predictions", "dead_letters")}
        self.daemons: list[Daemon] = []
        self.expected: dict[Place, Row] = {}
        self.partitions = setting.partitions
        self.says: str | None = None
        self.stack = contextlib.ExitStack()
        self._directory = "state"
        self._described: tuple[dict[Path, int], dict[str, Any]] = {}, {}
        self._over = False
        self._made: dict[bytes, Row] = {}
        self._rows = rows(0, poison)
        self._produced = 0
        self._feeder: Feeder | None = None
        self._rereads = True
        self._removed: dict[str, list[Line]] = {"predictions": [], "dead_letters": []}
        self._bootstrap = site.by_network if by_network else site.broker.bootstrap
        self._sections, self._source = sections or {}, source or {}
        site.broker.create_topic(self.topics["records"], setting.partitions)
        if setting.outputs != "files":
            site.broker.create_topic(self.topics["predictions"])
            site.broker.create_topic(self.topics["dead_letters"])
        self.configure()

    @property
    def directory(self) -> Path:
        """The checkpoint directory."""
        return self.folder / self._directory

    def configure(self, **source: Any) -> None:
        """Write the configuration, with further settings of the source."""
        self._source |= source
        settings = {
            **self.setting.sections(self._bootstrap, self.topics, **self._source),
            "model": _MODEL,
            "checkpoint": {"directory": self._directory, "every_records": 250, "every_seconds": 0.5},
            "metrics": None,
            **self._sections,
        }
        for key in ("predictions", "dead_letters"):
            settings[key] = {**settings[key], "flush_seconds": 0.1}  # several times between two checkpoints
        (self.folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))

    def move(self, directory: str) -> None:
        """Let the next daemons keep their checkpoints elsewhere."""
        self._directory = directory
        self.configure()

    def produce(self, count: int, *, partition: int | None = None, keyless: bool = False, **options: Any) -> None:
        """Put the next records into the topic, in batches of their own; not while it is fed.

        Parameters
        ----------
        count
            How many.
        partition
            Where all of them go; None: to all partitions in turn.
        keyless
            Whether they have no keys, and none of them is a tombstone, which must have one.
        options
            More for `tests.kafka.producing.produce`, such as ``transactional_id`` and ``abort``.

        """
        assert self._feeder is None, "the records would not be in order"
        chunk = list(islice((row for row in self._remember() if not keyless or row.value is not None), count))
        first = self._produced
        self._produced += count
        produce(
            self.site.broker.bootstrap,
            self.topics["records"],
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
        with self.site.broker.admin() as admin:
            admin.create_partitions({self.topics["records"]: self.partitions})

    def recreate(self, **config: object) -> None:
        """Let the topic of records be one with settings of its own, before anything is in it."""
        self.site.broker.delete_topic(self.topics["records"])
        self.site.broker.create_topic(self.topics["records"], self.partitions, **config)

    def feed(self, rate: float) -> None:
        """Produce the next records steadily from now on, until `finish`; again does nothing."""
        if self._feeder is not None:
            return
        first = self._produced
        self._feeder = Feeder(
            self.site.broker.bootstrap,
            self.topics["records"],
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

    def start(self, *, crash: str = "", sabotage: Sabotage = (), config: str = "config.yaml") -> Daemon:
        """Start a daemon, or a member of the group; but for a group, the one before it should have ended."""
        daemon = self.site.starter.start(self.folder, "run", config, crash=crash, sabotage=sabotage)
        self.daemons.append(daemon)
        return daemon

    def header(self) -> dict[str, Any]:
        """Read what the newest checkpoint says, or under ``"partitions"`` each one's; empty where there is none."""
        for _ in range(_LOOKS):
            try:
                # It is asked for often, and reading a checkpoint costs a thousand times as much as looking for it.
                there = {path: path.stat().st_mtime_ns for path in self.directory.rglob("checkpoint-*.skc")}
                if there != self._described[0]:
                    self._described = there, describe(self.directory)
            except (CheckpointError, OSError):
                continue  # the daemon rotates them meanwhile, or there is none
            return self._described[1]
        return {}

    def books(self) -> Counter[str]:
        """Add up the accounts in the newest checkpoints."""
        header = self.header()
        headers = [*header["partitions"].values()] if "partitions" in header else [header]
        return sum((Counter(each.get("account", {})) for each in headers), Counter())

    def consumed(self) -> int:
        """Tell how many records the newest checkpoints hold."""
        return self.books()["consumed"]

    def wait_for(self, consumed: int, daemon: Daemon | None = None) -> None:
        """Wait until a checkpoint holds so many records; the daemon must not end before."""
        daemon = daemon or self.daemons[-1]
        until(
            lambda: self.consumed() >= consumed or daemon.status is not None,
            lambda: f"only {self.consumed()} of {consumed} records were taken:\n{daemon.log[-4000:]}",
        )
        assert self.consumed() >= consumed, (
            f"the daemon ended ({daemon.status}) after {self.consumed()} of {consumed} records"
        )

    def recover(self, pattern: str) -> None:
        """Wait until the daemon says that it is over; in the short form start anew, sooner than it tries again."""
        self.daemons[-1].wait_until_it_says(pattern)
        if not self.long:
            assert self.daemons[-1].stop() == 0, f"status {self.daemons[-1].status}"

    def book(self, last: bool = False) -> None:
        """Read what was produced by now; `last`: the topic cannot be read any more after this."""
        if not self._rereads:
            return
        self._rereads = not last
        for partition, records in consume(self.site.broker.bootstrap, self.topics["records"]).items():
            for record in records:
                self.expected[partition, record.offset] = self._made[record.value if record.key is None else record.key]

    def end(self) -> None:
        """Say that no daemon can go on: what is there now is the end of it."""
        self._over = True

    def finish(self) -> None:
        """Let the daemon, a new one if none lives, deal with everything that was produced, and stop it."""
        if self._over:
            return
        self.stop_feeding()
        self.book()
        alive = [daemon for daemon in self.daemons if daemon.status is None] or [self.start()]
        self.wait_for(len(self.expected), alive[-1])
        for daemon in alive:
            assert daemon.stop() == 0, f"the daemon ended with status {daemon.status}:\n{daemon.log[-4000:]}"

    def outputs(self) -> tuple[list[Line], list[Line]]:
        """Read predictions and dead letters."""
        if self.setting.outputs == "files":
            predictions, letters = (
                read_file(self.folder / f"out/{key}.jsonl") for key in ("predictions", "dead_letters")
            )
        else:
            predictions, letters = (
                self._removed[key] + read_topic(self.site.broker.bootstrap, self.topics[key]) for key in self._removed
            )
        return predictions, letters

    def remove_output(self, key: str, last: int) -> None:
        """Let retention take the lines of an output, but for the last offsets; a consumer has read them."""
        bootstrap, topic = self.site.broker.bootstrap, self.topics[key]
        read = self._removed[key] + read_topic(bootstrap, topic)
        [end] = self.site.broker.end_offsets(topic).values()
        self.site.broker.delete_records(topic, {0: end - last})
        left = len(read_topic(bootstrap, topic))
        assert left, "no line is left"
        self._removed[key] = read[:-left]

    def findings(self, says: Sequence[str]) -> Findings:
        """Take the account.

        Parameters
        ----------
        says
            Patterns, each of which some line of the log must hold.

        """
        predictions, letters = self.outputs()
        found = account(self.expected, predictions, letters, self.books())
        if self.setting.reproducible and not found.lost and not found.doubled:
            for lines, digest in self._models(predictions):
                values = [self.expected[line.place].value or b"" for line in lines]
                undisturbed = self.site.references.run(values, _MODEL)
                compare(found, [line.text for line in lines], digest, undisturbed.predictions, undisturbed.digest)
        listen(found, "\n".join(daemon.log for daemon in self.daemons), [self.says] if self.says else says)
        return found

    def _models(self, predictions: Sequence[Line]) -> Iterator[tuple[list[Line], str]]:
        """Give each model's predictions in the order it made them, and its digest."""
        header = self.header()
        if self.setting.group:
            for partition, one in header["partitions"].items():
                yield (
                    sorted(line for line in predictions if line.place[0] == int(partition)),
                    one["model"]["state_digest"],
                )
        else:
            # One partition goes by its offsets. With several, the order is the daemon's own to choose, once.
            lines = sorted(predictions) if self.setting.partitions == 1 else list(predictions)
            yield lines, header["model"]["state_digest"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for number, daemon in enumerate(self.daemons, 1):
                error.add_note(f"--- daemon {number}, status {daemon.status}:\n{daemon.log[-_MOST_TOLD:]}")
        for daemon in self.daemons:
            daemon.kill()
        self.site.mend()
        self.stop_feeding()
        self.stack.close()
