"""One broker for all workers of a run: the first that needs it starts it, and it ends with the last that holds it."""

from __future__ import annotations

import fcntl
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.kafka.broker import Broker
from tests.kafka.distribution import Distribution

__all__ = ["shared_broker"]

_STARTED: list[Broker] = []
"""The brokers this worker started: they may outlive it, so that nobody waits for their end."""


@contextmanager
def shared_broker(folder: Path, installed: Distribution) -> Iterator[Broker]:
    """Hold the broker of a folder, which is started if nobody holds it yet."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        broker = _running(folder) or _start(folder, installed)
    try:
        yield broker
    finally:
        broker.release()


def _running(folder: Path) -> Broker | None:
    with suppress(OSError):  # no file, or a broker that has ended: its pipe has no reader
        broker: Broker = pickle.loads((folder / "broker.pickle").read_bytes())
        broker.hold()
        return broker
    return None


def _start(folder: Path, installed: Distribution) -> Broker:
    number = sum(1 for _ in folder.glob("broker-*"))
    broker = Broker(folder / f"broker-{number}", installed=installed)
    broker.start()
    _STARTED.append(broker)
    (folder / "broker.pickle").write_bytes(pickle.dumps(broker))
    return broker
