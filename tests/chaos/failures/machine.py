"""The machine under the daemon fails: its disk, its files, its clock."""

from __future__ import annotations

import errno
import time
from pathlib import Path

from tests.chaos.daemons import until
from tests.chaos.failure import failure
from tests.chaos.settings import FILES, LOGGED, PLAIN, TRANSACTIONS
from tests.chaos.small_disk import small_disk
from tests.chaos.trial import Trial

_HOUR = 3600


@failure(
    "disk full during a checkpoint",
    r"error .*the checkpoint at record \d+ could not be written: .*No space left on device; the daemon tries again",
    TRANSACTIONS,
    LOGGED,
    PLAIN,
)
def full(trial: Trial) -> int:
    """Fill the disk under the checkpoints: learning goes on, and they too when there is room."""
    trial.produce(2000)
    disk = trial.stack.enter_context(small_disk(trial.directory))
    daemon = trial.start(sabotage=disk.sabotage)
    trial.wait_for(500)
    trial.feed(1000)
    disk.fill()
    daemon.wait_until_it_says("could not be written")
    if trial.long:
        time.sleep(10.0)
    if trial.draw.random() < 0.5:
        daemon.kill()
    disk.free()
    return 1


@failure(
    "checkpoint directory becomes read-only",
    r"error .*Read-only file system",
    PLAIN,
    TRANSACTIONS,
)
def read_only(trial: Trial) -> int:
    """Let no file be written any more: that does not pass by itself, and the daemon ends."""
    flag = trial.folder / "read-only"
    trial.produce(2000)
    refusing = {"directory": str(trial.directory), "number": errno.EROFS, "while_there": str(flag)}
    daemon = trial.start(sabotage=[("refuse_files", refusing)])
    trial.wait_for(500)
    trial.feed(1000)
    flag.touch()
    assert daemon.wait() == 1, f"status {daemon.status}"
    return 1


@failure(
    "newest checkpoint corrupted",
    r"warning .*checkpoint-\d+\.skc: damaged .* the next older checkpoint is tried",
    TRANSACTIONS,
    PLAIN,
    LOGGED,
    FILES,
)
def corrupted(trial: Trial) -> int:
    """Flip a byte of the newest checkpoint: the one before it is taken, and what is downstream already is known."""
    trial.produce(2000)
    trial.feed(1000)
    times = 3 if trial.long else 1
    for _ in range(times):
        daemon = trial.start()
        trial.wait_for(trial.consumed() + 1000)
        until(lambda: len(_checkpoints(trial)) > 1, lambda: "there never were two checkpoints")
        time.sleep(trial.draw.uniform(0.0, 0.5))
        daemon.kill()
        newest = _checkpoints(trial)[-1]
        data = bytearray(newest.read_bytes())
        data[trial.draw.randrange(len(data))] ^= 1 << trial.draw.randrange(8)
        newest.write_bytes(data)
    return times


def _checkpoints(trial: Trial) -> list[Path]:
    return sorted(trial.directory.glob("checkpoint-*.skc"))


@failure("clock moved back an hour", r"reading kafka topic .* from record (?!1 on)[\d,]+ on", PLAIN, TRANSACTIONS)
def clock_moved_back(trial: Trial) -> int:
    """Set the clock back while it runs, and start it again before the time its checkpoints were written."""
    flag = trial.folder / "earlier"
    shifting = ("shift_clock", {"seconds": -_HOUR, "while_there": str(flag)})
    trial.produce(2000)
    trial.feed(1000)
    daemon = trial.start(sabotage=[shifting])
    trial.wait_for(1000)
    flag.touch()
    trial.wait_for(trial.consumed() + 1500)
    assert time.time() - trial.header()["run"]["written"] > _HOUR / 2, "the clock was not moved"
    daemon.kill()
    flag.unlink()
    daemon = trial.start(sabotage=[shifting])
    trial.wait_for(trial.consumed() + 500)
    daemon.kill()
    flag.touch()
    daemon = trial.start(sabotage=[shifting])
    trial.wait_for(trial.consumed() + 500)
    return 1
