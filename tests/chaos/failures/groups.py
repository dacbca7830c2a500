"""Partitions change hands while they are read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from tests.chaos.daemons import Daemon, until
from tests.chaos.failure import failure
from tests.chaos.settings import GROUP
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
