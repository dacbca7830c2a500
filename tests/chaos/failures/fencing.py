"""Two daemons where one should be."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.chaos.daemons import until
from tests.chaos.failure import failure
from tests.chaos.settings import ARRIVAL, TRANSACTIONS
from tests.chaos.trial import Trial


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
