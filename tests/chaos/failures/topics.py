"""The topic is not what it was: records removed, the topic replaced, a batch damaged on the broker's disk."""

from __future__ import annotations

import time

from tests.chaos.failure import failure
from tests.chaos.settings import FILES, LOGGED, PLAIN, TRANSACTIONS
from tests.chaos.trial import Trial
from tests.kafka.damage import corrupt_batch


@failure(
    "retention past our offset, on_gap: stop",
    r"error .*partition 0: offsets 1000 to 1499 \(500 of them\) were removed by retention before they were read",
    PLAIN,
    TRANSACTIONS,
)
def retention_stops(trial: Trial) -> int:
    """Remove what was not read: a start refuses, and says what is gone, until it is told to skip it."""
    _go_to_a_gap(trial)
    refused = trial.start()
    assert refused.wait() == 1, f"status {refused.status}"
    trial.configure(on_gap="skip")
    return 1


@failure(
    "retention past our offset, on_gap: skip",
    r"error .*partition 0: offsets 1000 to 1499 \(500 of them\) were removed by retention .* they are skipped",
    TRANSACTIONS,
    PLAIN,
    FILES,
    source={"on_gap": "skip"},
)
def retention_skips(trial: Trial) -> int:
    """Remove what was not read: it is told, and the rest is taken."""
    _go_to_a_gap(trial)
    return 1


def _go_to_a_gap(trial: Trial) -> None:
    daemon = trial.learns(1000)
    daemon.kill()
    trial.produce(1000)
    trial.retain(1500, first=1000)


@failure(
    "topic deleted and created again while down",
    r"error .*the topic was deleted and created again",
    PLAIN,
    TRANSACTIONS,
)
def replaced(trial: Trial) -> int:
    """Replace the topic: a start refuses to take one for the other; what was learned stays as it is."""
    daemon = trial.learns(1000)
    daemon.kill()
    _replace(trial)
    refused = trial.start()
    assert refused.wait() == 1, f"status {refused.status}"
    trial.end()
    return 1


@failure("topic deleted and created again while it is read", r"error .*the topic was deleted", TRANSACTIONS, PLAIN)
def replaced_while_read(trial: Trial) -> int:
    """Replace the topic under the daemon: it ends, and what it learned before is saved."""
    daemon = trial.learns(1000)
    _replace(trial)
    assert daemon.wait() == 1, f"status {daemon.status}"
    trial.end()
    return 1


def _replace(trial: Trial) -> None:
    trial.book(last=True)
    name = trial.topics["records"]
    trial.site.broker.delete_topic(name)
    trial.site.broker.create_topic(name, trial.setting.partitions)
    trial.produce(100)


@failure("a corrupt batch in the log", r"cannot be read and are dead letters", PLAIN, TRANSACTIONS, LOGGED, FILES)
def corrupt(trial: Trial) -> int:
    """Flip a bit on the broker's disk."""
    partitions = trial.setting.partitions
    for count in (1000, 20, 1000):
        trial.produce(count * partitions)
    trial.book(last=True)
    lost = corrupt_batch(trial.site.broker.log_directory(trial.topics["records"], 0), 1010)
    for offset in lost:
        trial.expected[0, offset] = trial.expected[0, offset]._replace(fate="corrupt")
    trial.says = rf"error .*partition 0: offsets {lost[0]} to {lost[-1]} cannot be read and are dead letters"
    trial.start()
    time.sleep(trial.draw.uniform(0.5, 1.0))
    trial.daemons[-1].kill()  # and once more, from wherever that was
    return 1
