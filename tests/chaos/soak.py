"""Kills of the daemon, restarts of the broker and stalls of the network without end, while records come steadily.

    python -m tests.chaos.soak [--minutes 30] [--rate N] [--seed SEED] [--out FILE]

At the end everything is dealt with, and the account must hold: nothing lost, nothing twice, and the model that of an
undisturbed run over the same records. Needs Java and Maven, as the tests do. Status 1 where it does not hold; then the
logs are kept, and the last line says where.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import table, write
from tests.chaos.account import Findings
from tests.chaos.daemons import Daemon
from tests.chaos.settings import Setting
from tests.chaos.site import Site
from tests.chaos.table import surroundings
from tests.chaos.trial import Trial

_SETTING = Setting("soak", partitions=3, outputs="transactions", order="logged")
_KILL, _END, _BROKER_KILL, _BROKER_STOP, _STALL = (
    "SIGKILLs of the daemon",
    "SIGTERMs of the daemon",
    "SIGKILLs of the broker",
    "clean restarts of the broker",
    "stalls of the network",
)
# Each round has all of them, in any order after the first, so that a short soak has the worst.
_ROUND = (_KILL, _BROKER_KILL, _KILL, _STALL, _KILL, _BROKER_STOP, _KILL, _END, _KILL, _KILL)
_MEAN_SECONDS, _MOST_SECONDS = 3.0, 10.0
_LONGEST_OUTAGE = 8.0
_LOOK_SECONDS = 0.25
_NEWS_SECONDS = 60.0


@dataclass
class Soaked:
    """What a soak came to."""

    seconds: float
    done: Counter[str] = field(default_factory=Counter)
    lives: int = 0
    memory: int = 0
    files: int = 0
    recovery: float = 0.0  #: the longest time from when nothing was in its way to the next checkpoint with more records
    findings: Findings = field(default_factory=Findings)

    def row(self) -> dict[str, object]:
        """Give a line of the table, by the names of its columns."""
        found = self.findings
        return {
            "minutes": f"{self.seconds / 60:.1f}",
            "records": f"{found.records:,}",
            **{name: self.done[name] for name in dict.fromkeys(_ROUND)},
            "lives": self.lives,
            "lost": found.lost,
            "doubled": found.doubled,
            "same model": {True: "yes", False: "NO", None: "NOT COMPARED"}[found.digest],
            "peak memory, MB": round(self.memory / 1e6),
            "most open files": self.files,
            "slowest recovery, s": f"{self.recovery:.1f}",
        }


class _Watch:
    """Looks at the daemon while time passes."""

    def __init__(self, trial: Trial, soaked: Soaked) -> None:
        self._trial, self._soaked = trial, soaked
        self._well_since: float | None = None
        self._reached = 0
        self._news = time.monotonic()

    @property
    def daemon(self) -> Daemon:
        """The one that lives."""
        return self._trial.daemons[-1]

    def well(self) -> None:
        """Note that nothing is in the way any more."""
        self._well_since, self._reached = time.monotonic(), self._trial.consumed()

    def ill(self) -> None:
        """Note that something is."""
        self._look()
        self._well_since = None

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            self._look()

    def complain(self, fault: str) -> None:
        """Note what is not as it must be."""
        self._soaked.findings.faults.append(f"{fault}: {self.daemon.log.splitlines()[-1:]}")

    def _look(self) -> None:
        soaked, daemon, now = self._soaked, self.daemon, time.monotonic()
        if daemon.status is not None:
            self.complain(f"the daemon ended by itself, status {daemon.status}")
            self._trial.start()
        soaked.memory = max(soaked.memory, daemon.memory)
        soaked.files = max(soaked.files, daemon.files)
        if self._well_since is not None and self._trial.consumed() > self._reached:
            soaked.recovery = max(soaked.recovery, now - self._well_since)
            self._well_since = None
        if now - self._news > _NEWS_SECONDS:
            self._news = now
            done = ", ".join(f"{count} {name}" for name, count in soaked.done.items())
            print(f"{self._trial.consumed():,} records; {done}", file=sys.stderr, flush=True)


def soak(site: Site, seconds: float, seed: int = 0, rate: float = 200.0) -> Soaked:
    """Feed records and do harm for so long, then take the account."""
    draw = random.Random(seed)
    soaked = Soaked(seconds)
    with Trial(site, _SETTING, draw, by_network=True) as trial:
        trial.feed(rate)
        trial.start()
        watch = _Watch(trial, soaked)
        end = time.monotonic() + seconds
        harms = _harms(draw)
        while time.monotonic() < end:
            watch.wait(min(draw.expovariate(1 / _MEAN_SECONDS), _MOST_SECONDS, end - time.monotonic()))
            harm = next(harms)
            watch.ill()
            _do(harm, trial, watch)
            watch.well()
            soaked.done[harm] += 1
        soaked.lives = len(trial.daemons)
        trial.finish()
        faults = soaked.findings.faults
        soaked.findings = trial.findings(["reading kafka topic .* from record", "no broker answers"])
        soaked.findings.faults += faults
    return soaked


def _harms(draw: random.Random) -> Iterator[str]:
    each = list(_ROUND)
    while True:
        yield from each
        draw.shuffle(each)


def _do(harm: str, trial: Trial, watch: _Watch) -> None:
    """Do a harm, and let it pass."""
    if harm == _KILL:
        watch.daemon.kill()
        trial.start()
    elif harm == _END:
        status = watch.daemon.stop()
        # One that has just been started may not have asked for the signal yet.
        if status not in (0, -signal.SIGTERM):
            watch.complain(f"SIGTERM ended the daemon with status {status}")
        trial.start()
    else:
        begin = {
            _BROKER_KILL: trial.site.broker.kill,
            _BROKER_STOP: trial.site.broker.stop,
            _STALL: trial.site.network.stall,
        }
        begin[harm]()
        watch.wait(trial.draw.uniform(0.0, _LONGEST_OUTAGE))
        if trial.draw.random() < 0.3:
            watch.daemon.kill()
            trial.start()
            watch.wait(trial.draw.uniform(0.0, _LONGEST_OUTAGE))
        trial.site.mend()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=200.0, help="records a second")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    print(f"files in {folder}", file=sys.stderr)
    with Site(folder) as site:
        soaked = soak(site, 60 * options.minutes, options.seed, options.rate)
    row = soaked.row()
    text = "\n\n".join(
        [
            "# Soak: random kills, restarts of the broker and stalls, without end",
            f"`python -m tests.chaos.soak {' '.join(sys.argv[1:])}` ({surroundings()}). A topic of 3 partitions, "
            "`order: logged`, predictions and dead letters in transactions, a checkpoint every half second or 250 "
            "records. Recovery: from when nothing is in the way any more to the next checkpoint with more records.",
            table(list(row), [list(row.values())]),
            *(f"- {fault}" for fault in soaked.findings.faults),
        ]
    )
    if options.out is not None:
        write(options.out, text)
    else:
        print(text)
    if not soaked.findings.good:
        print(f"the logs are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
