"""The unit under a running systemd: it is ready when the daemon reads, and the watchdog ends one that is frozen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.conftest import Home, write_stream
from tests.deploy.service_manager import NamespacedSystemd

# Of the unit all but its patience: what is compiled here is what this run needs, and the time is the tests'.
DROP_IN = "ExecStartPre=\nWatchdogSec=4\nTimeoutAbortSec=1\nRestartSec=100ms\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path / "stream.csv", 1000, bad=False)
    Home(tmp_path).configure(
        source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True},
        predictions={"kind": "jsonl", "path": "predictions.jsonl"},
        dead_letters={"kind": "jsonl", "path": "dead.jsonl"},
        checkpoint={"directory": "state", "every_records": 500},
    )
    return tmp_path


@pytest.mark.long
def test_a_service_from_its_start_to_its_end(folder: Path) -> None:
    with NamespacedSystemd(folder, DROP_IN) as systemd:
        assert systemd.control("start", "streamkernel").returncode == 0  # which waits until it is ready
        assert "reading csv file stream.csv, followed from record 1 on" in systemd.log
        assert systemd.show("ActiveState") == "active"
        systemd.wait_for(lambda: systemd.show("StatusText").startswith("1,000 records: progressive loss 0."))

        first = systemd.show("MainPID")
        rights = systemd.run("cat", f"/proc/{first}/status").stdout
        assert "\nNoNewPrivs:\t1\n" in rights
        assert "\nCapBnd:\t0000000000000000\n" in rights
        assert systemd.run("kill", "-STOP", first).returncode == 0
        systemd.wait_for(lambda: systemd.show("NRestarts") == "1" and systemd.show("ActiveState") == "active")
        assert systemd.show("MainPID") != first
        assert "reading csv file stream.csv, followed from record 1001 on" in systemd.log

        assert systemd.run("kill", "-KILL", systemd.show("MainPID")).returncode == 0
        systemd.wait_for(lambda: systemd.show("NRestarts") == "2" and systemd.show("ActiveState") == "active")

        assert systemd.control("stop", "streamkernel").returncode == 0
        assert (systemd.show("Result"), systemd.show("ExecMainStatus")) == ("success", "0")
        assert "SIGTERM came" in systemd.log


@pytest.mark.long
def test_a_configuration_that_cannot_be_is_not_tried_again(folder: Path) -> None:
    (folder / "config.yaml").write_text("model: nonsense\n")
    with NamespacedSystemd(folder, DROP_IN) as systemd:
        assert systemd.control("start", "streamkernel").returncode != 0
        assert (systemd.show("ActiveState"), systemd.show("ExecMainStatus")) == ("failed", "2")
        assert systemd.show("NRestarts") == "0"
        assert "source: required" in systemd.log
