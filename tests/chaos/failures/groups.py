"""Partitions change hands: members of a group come, go and stand still, or two daemons run where one should be."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.daemons import Daemon, until
from tests.chaos.failure import failure
from tests.chaos.settings import ARRIVAL, GROUP, TRANSACTIONS
from tests.chaos.trial import Trial

_BACKLOG = 20_000
"""Long enough to be read when the partitions change hands."""


@failure(
    "rebalance in the middle of a batch",
    r"info .*: holding partitions? .*\(gone partitions? [\d, ]+\)",
    GROUP,
    short=False,  # tests.kafka.test_group has several
)
def rebalanced(trial: Trial) -> int:
    """Let members come and go, in good order, killed and frozen, while there is a backlog to read."""
    trial.produce(_BACKLOG)
    member = trial.start()
    until(lambda: _held(member) == 3, lambda: f"it was never given all:\n{member.log[-4000:]}")
    leaving: list[Callable[[Daemon], None]] = [_ends, _dies, _freezes]
    ways = leaving if trial.long else leaving[:1]
    for leave in ways:
        trial.wait_for(trial.consumed() + 1, member)
        second = trial.start()
        second.wait_until_it_says("holding partition")
        trial.produce(_BACKLOG)
        time.sleep(trial.draw.uniform(0.0, 3.0))
        leave(member)
        until(lambda: _held(second) == 3, lambda: f"it was never given all:\n{second.log[-4000:]}")  # noqa: B023
        if member.status is None:
            member.thaw()
            member.wait_until_it_says("another member may have it now.")
            member.stop()
        trial.produce(_BACKLOG)
        member = second
    return 2 * len(ways)


def _held(member: Daemon) -> int:
    """Tell how many partitions a member was last given."""
    said = re.findall(r"holding (?:partitions ([\d, ]+)|no partition) \(", member.log)
    return len(re.findall(r"\d+", said[-1])) if said else 0


def _ends(member: Daemon) -> None:
    assert member.stop() == 0, f"status {member.status}"


def _dies(member: Daemon) -> None:
    member.kill()


def _freezes(member: Daemon) -> None:
    member.freeze()


_HOLDING = r"info .*: holding partitions? [\d, ]+ \("


@failure("two members started at once", _HOLDING, GROUP, short=False)
def together(trial: Trial) -> int:
    """Start two members together, kill both, and start two again."""
    trial.produce(6000)
    for _ in range(2):
        members = [trial.start(), trial.start()]
        trial.wait_for(trial.consumed() + 1000, members[0])
        for member in members:
            member.kill()
    trial.start()
    return 2


@failure(
    "a member stopped past max.poll.interval.ms and continued",
    _HOLDING,
    GROUP,
    source={"options": {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 300, "max_poll_interval_ms": 2000}},
    short=False,
)
def stopped_past_the_interval(trial: Trial) -> int:
    """Freeze the member longer than it may be away, while its partitions go on; then let it go on, too."""
    trial.feed(500)
    member = trial.start()
    trial.wait_for(500)
    for _ in range(2):
        member.freeze()
        time.sleep(4.0)
        member.thaw()
        trial.wait_for(trial.consumed() + 2000)
    return 2


@failure("a rebalance during a restore", _HOLDING, GROUP, short=False)
def restored(trial: Trial) -> int:
    """Let a second member come while the first one restores its partitions, and a third one while that does."""
    trial.produce(6000)
    member = trial.start()
    trial.wait_for(1500)
    member.kill()
    for _ in range(3):
        first = trial.start()
        until(lambda: first.says("holding partition"), lambda: f"it was given nothing:\n{first.log[-4000:]}")  # noqa: B023
        time.sleep(trial.draw.uniform(0.0, 1.0))
        second = trial.start()
        time.sleep(trial.draw.uniform(0.0, 1.5))
        first.kill()
        second.kill()
    return 3


@failure(
    "own offset older than retention when a group restores",
    r"error .*partition 0: offsets \d+ to 1499 \([\d,]+ of them\) were removed by retention before they were read",
    GROUP,
    source={"on_gap": "skip"},
    short=False,
)
def older_than_retention(trial: Trial) -> int:
    """Remove what a partition would go on with, while its member is down."""
    member = trial.learns(3000)
    assert member.stop() == 0, f"status {member.status}"
    trial.produce(3000)
    trial.retain(1500, first=1000)
    return 1


@failure("a second daemon with the same transactional id", r"error .*has fenced this one off", TRANSACTIONS, ARRIVAL)
def fenced(trial: Trial) -> int:
    """Go on elsewhere from a copy of the checkpoints while the first daemon still lives, as after a network split."""
    first = trial.learns(1500)
    _copy(trial.directory, trial.folder / "copy")
    trial.move("copy")
    second = trial.start()
    until(lambda: second.says("reading kafka topic"), lambda: second.log[-4000:])
    trial.produce(1000)
    assert first.wait() == 1, f"status {first.status}"
    return 1


def _copy(directory: Path, to: Path) -> None:
    """Copy what stands still: the daemon that goes on takes its oldest files away meanwhile."""
    while True:
        try:
            shutil.copytree(directory, to)
        except (FileNotFoundError, shutil.Error):
            shutil.rmtree(to, ignore_errors=True)
        else:
            return
