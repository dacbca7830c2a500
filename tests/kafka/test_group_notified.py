"""The service manager hears of a member of a group from the member alone, once all its partitions are read."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon.notifications import ServiceManager
from tests.kafka.cluster import Cluster
from tests.kafka.members import Group, rows
from tests.kafka.producing import produce


@pytest.mark.long
def test_a_member_is_ready_when_its_partitions_are_read(
    broker: Cluster, topic: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(partitions=2)
    for partition in (0, 1):
        produce(broker.bootstrap, name, rows(100), partition=partition)
    group = Group(tmp_path, broker, name, 2)
    with ServiceManager() as manager:
        monkeypatch.setenv("NOTIFY_SOCKET", manager.name)
        monkeypatch.setenv("WATCHDOG_USEC", "2000000")
        member = group.start()
        try:
            manager.wait_for("READY=1")
            assert member.holds({0, 1})
            for partition in group.partitions:
                variables = Path(f"/proc/{group.pid(partition)}/environ").read_bytes()
                assert b"PYTHONPATH=" in variables
                assert not any(given in variables for given in (b"NOTIFY_SOCKET=", b"WATCHDOG_"))
            manager.wait_for(lambda lines: any(line.startswith("STATUS=partitions 0, 1 of ") for line in lines))
            manager.wait_for(lambda lines: lines.count("WATCHDOG=1") >= 3)
            member.signal(signal.SIGTERM)
            manager.wait_for("STOPPING=1")
            assert member.wait() == 0
        finally:
            group.close()
    assert manager.told.count("READY=1") == 1
