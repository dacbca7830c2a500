"""The process dies while a file is learned before the topic, and on either side of the seam between the two."""

from __future__ import annotations

import signal

from tests.chaos import points
from tests.chaos.failure import failure
from tests.chaos.settings import FILES, PLAIN, TRANSACTIONS
from tests.chaos.trial import Trial

__all__ = ["PLACES"]

_GOES_ON = r"warm start: reading jsonl file warm\.jsonl from record \d+ on"
_MAIN = r"reading kafka topic"
# A warm start writes no predictions: there is nothing to publish before the seam.
_WITHIN = sorted(points.RUN - {"published"})

PLACES = {*_WITHIN, *points.WARM_START}
"""The fault points at which it dies before the first record of the topic."""


@failure("death at every known place of a warm start", _GOES_ON, TRANSACTIONS, PLAIN, FILES, n_warm=6000)
def killed(trial: Trial) -> int:
    """Let each life find what the one before left: within the warm start, at the seam and behind it."""
    trial.feed(500)
    within = [f"{point}:{trial.draw.randint(1, 2)}" for point in _WITHIN]
    # The seam is passed twice: before the checkpoint that says so, and after it.
    for crash in (*within, "seam:1", "seam:2"):
        _die(trial, crash)
        assert not trial.daemons[-1].says(_MAIN), f"{crash}:\n{trial.daemons[-1].log}"
    _die(trial, "published:1")
    assert trial.daemons[-1].says(_MAIN)
    return len(within) + 3


def _die(trial: Trial, crash: str) -> None:
    daemon = trial.start(crash=crash)
    assert daemon.wait(f"{crash} was never passed") == -signal.SIGKILL, f"status {daemon.status} at {crash}"
