"""The service manager (systemd) is told when the daemon is ready, as long as it is well, and that it ends."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.base.notifier import Notifier
from streamkernel.daemon.base.notify_socket import take_notify_socket
from streamkernel.daemon.group import member
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.notifications import ServiceManager

WATCHDOG_USEC = "400000"
_SILENCE = 0.9  # several times the watchdog's interval


@pytest.fixture
def by_path() -> Iterator[ServiceManager]:
    with ServiceManager() as one:
        yield one


def environment(manager: ServiceManager, **extra: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": WATCHDOG_USEC, **extra}


def several_pings(lines: list[str]) -> bool:
    return lines.count("WATCHDOG=1") >= 3


class TestSocket:
    @pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
    def test_a_message_is_one_datagram_and_a_value_one_line(self, abstract: bool) -> None:
        with ServiceManager(abstract) as manager:
            socket = take_notify_socket(environment(manager))
            assert socket is not None
            assert socket.watchdog == 0.4
            assert socket.send(READY=1, STATUS="a\nSTOPPING=1\r\x00\u2028é" + "x" * 1000)
            ready, status = manager.read(60)
        assert ready == "READY=1"
        assert status == "STATUS=a STOPPING=1   é" + "x" * (300 - len("a STOPPING=1   é"))

    def test_a_watchdog_for_another_process_is_none_of_ours(self, by_path: ServiceManager) -> None:
        socket = take_notify_socket(environment(by_path, WATCHDOG_PID=str(os.getpid() + 1)))
        assert socket is not None
        assert socket.watchdog is None

    @pytest.mark.parametrize(
        "name",
        [
            *("", "vsock:2:1234", "/nobody/is/here", "/no\nbody\x1b[31m\udcff"),
            pytest.param("/" + "x" * 100_000, id="long"),
        ],
    )
    def test_a_socket_that_cannot_be_used_is_one_line_of_the_log(
        self, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        socket = take_notify_socket({"NOTIFY_SOCKET": name})
        for _ in range(3):
            assert socket is None or not socket.send(READY=1)
        assert len(caplog.records) == (1 if name else 0)
        # A name that can be a socket's, of 107 bytes at most, is shown whole.
        shown = repr(name)[1:-1]
        assert all(shown[:107] in line and len(line) < 300 and line.isprintable() for line in caplog.messages)


class TestHealthThatIsReported:
    @pytest.fixture
    def health(self, by_path: ServiceManager, monkeypatch: pytest.MonkeyPatch) -> Health:
        for key, value in environment(by_path).items():
            monkeypatch.setenv(key, value)
        return Health()

    def test_a_start_is_given_more_time_until_it_is_ready(self, health: Health, by_path: ServiceManager) -> None:
        with Notifier(health, lambda: False):
            lines = by_path.wait_for(several_pings)
            assert lines.count("EXTEND_TIMEOUT_USEC=30000000") == 1
            assert "STATUS=starting" in lines
            assert "READY=1" not in lines
            health.summary = lambda: "5 records"
            health.ready = True
            by_path.wait_for("STATUS=5 records")
        assert by_path.told.count("READY=1") == 1
        by_path.wait_for("STOPPING=1")

    def test_what_the_liveness_probe_says_stops_the_watchdog(self, health: Health, by_path: ServiceManager) -> None:
        trouble: list[str] = []
        health.trouble = lambda: trouble[0] if trouble else None
        health.ready = True
        with Notifier(health, lambda: False):
            by_path.wait_for(several_pings)
            trouble.append("the daemon has made no progress for 130 s")
            by_path.wait_for("STATUS=the daemon has made no progress for 130 s")
            assert by_path.silent(_SILENCE)
            trouble.clear()  # such as a refit, which may take long
            by_path.wait_for(several_pings)

    def test_a_run_that_is_over_at_once_was_ready(self, health: Health, by_path: ServiceManager) -> None:
        with Notifier(health, lambda: False):
            pass
        assert by_path.wait_for("STOPPING=1")[-2:] == ["READY=1", "STOPPING=1"]


def test_without_a_service_manager_there_is_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    with Notifier(Health(), lambda: False) as notifier:
        assert not notifier.running


def test_the_children_of_a_member_do_not_have_the_socket(
    here: Home, by_path: ServiceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in environment(by_path).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(member, "Child", lambda command, given, environment: (command, given, environment))
    plan = prepare(here.config, {})
    with Notifier(Health(), lambda: False):
        started: Any = member._start(plan, b"", 3)
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & started[2].keys()


def test_a_daemon_from_its_start_to_its_end(home: Home, launcher: Launcher, by_path: ServiceManager) -> None:
    write_stream(home.folder / "stream.csv", 1200, bad=False)
    home.configure(source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True})
    daemon = launcher.start(home, "run", "config.yaml", **environment(by_path))
    lines = by_path.wait_for("READY=1")
    assert "STOPPING=1" not in lines
    assert list(Path(home.folder, "out/state").glob("checkpoint-*.skc"))  # the first one, before any record
    assert "reading csv file" in daemon.log
    by_path.wait_for(lambda lines: any(line.startswith("STATUS=1,200 records: progressive loss 0.") for line in lines))
    daemon.signal(signal.SIGSTOP)
    assert by_path.silent(_SILENCE)
    daemon.signal(signal.SIGCONT)
    by_path.wait_for(several_pings)
    daemon.signal(signal.SIGTERM)
    by_path.wait_for("STOPPING=1")
    ended = daemon.wait()
    assert ended.returncode == 0, ended.stderr
    assert by_path.told.count("READY=1") == by_path.told.count("STOPPING=1") == 1


STUCK = """
import time
from river import dummy
from streamkernel.daemon.monitoring import watch

watch._SILENCE_SECONDS = 1.0

class Stuck(dummy.PriorClassifier):
    def learn_one(self, x, y):
        super().learn_one(x, y)
        if float(x["b"]) == 7:
            time.sleep(600)
"""


def test_a_loop_that_is_stuck_is_no_longer_well(home: Home, launcher: Launcher, by_path: ServiceManager) -> None:
    (home.folder / "stuck.py").write_text(STUCK)
    (home.folder / "stream.csv").write_text("a,b,y\n1,2,yes\n3,4,no\n")
    home.configure(
        source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True},
        model=["stuck.Stuck"],
        imports=["stuck"],
    )
    daemon = launcher.start(home, "run", "config.yaml", **environment(by_path))
    by_path.wait_for("READY=1")
    by_path.wait_for(several_pings)
    with (home.folder / "stream.csv").open("a") as stream:
        stream.write("5,7,yes\n")
    by_path.wait_for(lambda lines: any("the daemon has made no progress for" in line for line in lines))
    by_path.read(0.0)
    told = len(by_path.told)
    assert not [line for line in by_path.told[told:] + by_path.read(_SILENCE) if line == "WATCHDOG=1"]
    daemon.signal(signal.SIGKILL)
    daemon.wait()


@pytest.fixture(autouse=True)
def _warnings_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
