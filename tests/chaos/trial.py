"""One trial: a known stream, a daemon that something happens to, and the account at the end."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.monitoring.inspection import describe
from streamkernel.daemon.run_state.models import published_entry
from tests.chaos.account import Findings, Line, account, compare, listen, read_file, read_topic
from tests.chaos.daemons import Daemon, Sabotage, until
from tests.chaos.records import TrialRecords
from tests.chaos.reference import WARM, WARM_START, warm_lines
from tests.chaos.settings import EVERY_SECONDS, FLUSH_SECONDS, Setting
from tests.chaos.site import Site

_MODEL = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]
_MOST_TOLD = 4000
_LOOKS = 5


class Trial(TrialRecords):
    """A stream, its topics, a configuration, and the daemons that ran on it one after the other.

    A context manager: it leaves no process of its own, and the site well."""

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
        n_warm: int = 0,
    ) -> None:
        self.site, self.setting, self.draw, self.long = site, setting, draw, long
        number = site.number()
        self.folder = site.folder / f"trial-{number}"
        self.folder.mkdir()
        self.topics = {key: f"{key}-{number}" for key in ("records", "predictions", "dead_letters")}
        self.daemons: list[Daemon] = []
        super().__init__(site, setting, self.topics["records"], self.folder, poison)
        self.says: str | None = None
        self.stack = contextlib.ExitStack()
        self._directory = "state"
        self._described: tuple[dict[Path, int], dict[str, Any]] = {}, {}
        self._over = False
        self._removed: dict[str, list[Line]] = {"predictions": [], "dead_letters": []}
        self._bootstrap = site.by_network if by_network else site.broker.bootstrap
        self._sections, self._source = sections or {}, {**(source or {})}
        self._warm = warm_lines(n_warm)
        if self._warm:
            (self.folder / WARM).write_bytes(self._warm)
            self._sections = {**self._sections, **WARM_START}
        if self.intake is not None:
            self.stack.callback(self.intake.close)
            self._source = {**self.intake.section, **self._source}
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
            "checkpoint": {"directory": self._directory, "every_records": 250, "every_seconds": EVERY_SECONDS},
            "metrics": None,
            **self._sections,
        }
        for key in ("predictions", "dead_letters"):
            settings[key] = {**settings[key], "flush_seconds": FLUSH_SECONDS}
        (self.folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))

    def move(self, directory: str) -> None:
        """Let the next daemons keep their checkpoints elsewhere."""
        self._directory = directory
        self.configure()

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
        return sum((Counter(each.get("source", {}).get("account", {})) for each in headers), Counter())

    def learns(self, count: int) -> Daemon:
        """Produce records, and start a daemon that takes all of them."""
        self.produce(count)
        daemon = self.start()
        self.wait_for(count)
        return daemon

    def works(self, count: int, rate: float, taken: int) -> Daemon:
        """Produce records, more of them at a rate, and start a daemon that takes some."""
        self.produce(count)
        self.feed(rate)
        daemon = self.start()
        self.wait_for(taken)
        return daemon

    def retain(self, end: int, *, partition: int = 0, first: int = 0) -> None:
        """Let retention take the records of a partition up to an offset, of which those from `first` were not read."""
        self.book()
        self.site.broker.delete_records(self.topics["records"], {partition: end})
        for offset in range(first, end):
            del self.expected[partition, offset]
        self.book(last=True)

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
        """Wait until the daemon says that it is over; in the short form start over, sooner than it tries again."""
        self.daemons[-1].wait_until_it_says(pattern)
        if not self.long:
            assert self.daemons[-1].stop() == 0, f"status {self.daemons[-1].status}"

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
            # Where a checkpoint held everything already, it may not have asked for the signal yet.
            daemon.wait_until_it_says(r"\S")
            assert daemon.stop() == 0, f"the daemon ended with status {daemon.status}:\n{daemon.log[-4000:]}"
        # No stop waits for a connection that an outage left dead: what it says then must hold.
        if any(daemon.says("the next start commits them") for daemon in alive):
            following = self.start()
            following.wait_until_it_says(r"reading kafka topic .* from record [\d,]+ on")
            assert following.stop() == 0, f"the daemon ended with status {following.status}:\n{following.log[-4000:]}"

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

    def findings(self, says: Sequence[str]) -> Findings:
        """Take the account."""
        predictions, letters = self.outputs()
        found = account(self.expected, predictions, letters, self.books())
        if self.setting.reproducible and not found.lost and not found.doubled:
            for lines, digest in self._models(predictions):
                values = [self.expected[line.place].value or b"" for line in lines]
                undisturbed = self.site.references.run(values, _MODEL, self._warm)
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
                    published_entry(one)["state_digest"],
                )
        else:
            # One partition goes by its offsets. With several, the order is the daemon's own to choose, once.
            lines = sorted(predictions) if self.setting.partitions == 1 else list(predictions)
            yield lines, published_entry(header)["state_digest"]

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
