"""Members of a group that come at once, stand still for too long, or change while a partition is restored."""

from __future__ import annotations

import time

from tests.chaos.daemons import until
from tests.chaos.failure import failure
from tests.chaos.settings import GROUP
from tests.chaos.trial import Trial

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
