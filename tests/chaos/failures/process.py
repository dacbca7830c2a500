"""The process dies: at any moment, and at the dangerous ones."""

from __future__ import annotations

import signal
import time

from tests.chaos import points
from tests.chaos.failure import Inject, failure
from tests.chaos.settings import ARRIVAL, FILES, JOURNAL, LOGGED, PLAIN, TRANSACTIONS, WATCHED, Setting
from tests.chaos.trial import Trial

_GOES_ON = r"reading .* from record [\d,]+ on"


@failure("SIGKILL at a random moment", _GOES_ON, PLAIN, TRANSACTIONS, LOGGED, ARRIVAL, FILES, WATCHED, JOURNAL)
def sigkill(trial: Trial) -> int:
    """Kill it again and again while records come."""
    kills = 20 if trial.long else 5
    trial.produce(2000)
    trial.feed(2000)
    for _ in range(kills):
        daemon = trial.start()
        time.sleep(trial.draw.uniform(0.0, 1.5))
        daemon.kill()
    return kills


def _at_point(point: str) -> Inject:
    def die(trial: Trial) -> int:
        trial.feed(500)
        counts = (1, 2, 5, trial.draw.randint(1, 20)) if trial.long else (trial.draw.randint(1, 5),)
        for count in counts:
            daemon = trial.start(crash=f"{point}:{count}")
            status = daemon.wait(f"{point} was never passed, see tests/chaos/points.py")
            assert status == -signal.SIGKILL, f"status {status}"
        return len(counts)

    return die


# A place that a run does not pass would be waited for in vain: it is tried where it is passed.
for _point in sorted(points.RUN):
    failure(f"crash point {_point}", _GOES_ON, TRANSACTIONS, PLAIN, LOGGED, FILES, WATCHED, JOURNAL, death=True)(
        _at_point(_point)
    )


def _at_call(call: str, after: bool) -> Inject:
    def die(trial: Trial) -> int:
        trial.feed(500)
        counts = (1, 2, 5, trial.draw.randint(1, 20)) if trial.long else (trial.draw.randint(1, 5),)
        for count in counts:
            daemon = trial.start(sabotage=[("die_at", {"call": call, "count": count, "after": after})])
            assert daemon.wait() == -signal.SIGKILL, f"status {daemon.status}"
        return len(counts)

    return die


def _calls(name: str, call: str, *settings: Setting) -> None:
    for after in (False, True):
        when = "after" if after else "before"
        failure(f"death {when} {name}", _GOES_ON, *settings, death=True)(_at_call(call, after))


# What the daemon does with a broker has dangerous moments of its own, on either side of a call.
_calls("lines are sent", "streamkernel.connectors.kafka.writing.producer:TopicProducer.send", PLAIN, TRANSACTIONS)
_calls(
    "a transaction is committed",
    "streamkernel.connectors.kafka.writing.producer:TopicProducer.commit",
    TRANSACTIONS,
    ARRIVAL,
)
_calls("outputs are flushed", "streamkernel.connectors.kafka.writing.sink:KafkaSink.flush", PLAIN, TRANSACTIONS)
_calls("the order is logged", "streamkernel.connectors.kafka.reading.order_log:OrderLog.append", LOGGED)
_calls(
    "the source hears of a checkpoint", "streamkernel.connectors.kafka.reading.source:KafkaSource.saved", PLAIN, LOGGED
)


_DEADLY = '''
import os
from river import base

class Deadly(base.Transformer):
    """Passes everything on, and dies of poison."""

    def transform_one(self, x):
        if x.get("color") == "poison":
            os.abort()
        return x
'''


@failure(
    "a record that kills the process",
    r"error .*the record at position 1234 kills the process: it is a dead letter",
    PLAIN,
    TRANSACTIONS,
    poison=1234,
    sections={
        "imports": ["deadly"],
        "model": ["deadly.Deadly", {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
    },
)
def poison(trial: Trial) -> int:
    """Start it again until it gets past the record, as a supervisor does."""
    (trial.folder / "deadly.py").write_text(_DEADLY)
    trial.produce(2000)
    statuses: list[int | None] = []
    while len(statuses) < 10 and (not statuses or statuses[-1] == -signal.SIGABRT):
        daemon = trial.start()
        while daemon.status is None and trial.consumed() < 2000:
            time.sleep(0.02)
        statuses.append(daemon.status)
    # Once with its chunk, three times by itself; then it is tried in a child, which dies instead.
    assert statuses == [-signal.SIGABRT] * 4 + [None], statuses
    return 1


_WARM = r"warm start: reading jsonl file warm\.jsonl from record \d+ on"
_READING = r"reading kafka topic"
# A warm start writes no predictions: there is nothing to publish before the seam.
_WITHIN = sorted(points.RUN - {"published"})

PLACES_OF_WARM_START = {*_WITHIN, *points.WARM_START}
"""The fault points at which it dies before the first record of the topic."""


@failure("death at every known place of a warm start", _WARM, TRANSACTIONS, PLAIN, FILES, n_warm=6000)
def killed_in_a_warm_start(trial: Trial) -> int:
    """Let each life find what the one before left: within the warm start, at the seam and behind it."""
    trial.feed(500)
    within = [f"{point}:{trial.draw.randint(1, 2)}" for point in _WITHIN]
    # The seam is passed twice: before the checkpoint that says so, and after it.
    for crash in (*within, "seam:1", "seam:2"):
        _die(trial, crash)
        assert not trial.daemons[-1].says(_READING), f"{crash}:\n{trial.daemons[-1].log}"
    _die(trial, "published:1")
    assert trial.daemons[-1].says(_READING)
    return len(within) + 3


def _die(trial: Trial, crash: str) -> None:
    daemon = trial.start(crash=crash)
    assert daemon.wait(f"{crash} was never passed") == -signal.SIGKILL, f"status {daemon.status} at {crash}"
