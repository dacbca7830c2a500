"""The children of a member: started, heard, ended, started again; here they are small programs instead of daemons."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.group.child import Child
from streamkernel.daemon.group.supervisor import Supervisor
from tests.daemon.status import Time
from tests.processes import wait_until

pytestmark = pytest.mark.usefixtures("processes")

# Reports that it reads, and ends in good order when it is told to.
GOOD = """
import json, os, signal, sys, time
def end(*_):
    print(json.dumps(["saved", 99]), flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
print(json.dumps(["serving", ["127.0.0.1", 1234]]))
print(json.dumps(["reading", 1]))
print(json.dumps(["saved", int(sys.stdin.read() or 0)]), flush=True)
time.sleep(600)
"""
DEAF = GOOD.replace("signal.signal(signal.SIGTERM, end)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
FAILING = """
import json
print(json.dumps(["failed", "the disk is on fire"]), flush=True)
raise SystemExit(1)
"""


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def supervise(clock: Time) -> Iterator[Callable[..., Supervisor]]:
    """Make supervisors of these programs, by partition, and see that nothing is left of them."""
    supervisors: list[Supervisor] = []

    def make(*programs: str, given: bytes = b"") -> Supervisor:
        def start(partition: int) -> Child:
            return Child([sys.executable, "-I", "-S", "-c", programs[partition]], given, clock=clock)

        supervisors.append(Supervisor(start, grace=5.0, clock=clock))
        return supervisors[-1]

    yield make
    for supervisor in supervisors:
        for child in supervisor.children.values():
            child.kill()
        wait_until(
            lambda supervisor=supervisor: all(child.ended() is not None for child in supervisor.children.values())
        )


def poll_until(supervisor: Supervisor, holds: Callable[[], bool]) -> dict[int, int]:
    """Watch until something holds, and give everything that was saved meanwhile."""
    saved: dict[int, int] = {}

    def look() -> bool:
        saved.update(supervisor.poll())
        return holds()

    wait_until(look)
    return saved


def test_one_child_for_each_partition_that_is_wanted(supervise: Callable[..., Supervisor]) -> None:
    supervisor = supervise(GOOD, GOOD, GOOD, given=b"17")
    assert supervisor.reading  # of nothing
    supervisor.assign({0, 2})
    assert not supervisor.reading
    assert poll_until(supervisor, lambda: supervisor.reading) == {0: 17, 2: 17}
    assert supervisor.addresses() == {0: ("127.0.0.1", 1234), 2: ("127.0.0.1", 1234)}
    assert supervisor.poll() == {}
    kept = supervisor.children[2].pid
    supervisor.assign({1, 2})
    assert supervisor.children[0].state == "finishing"
    assert poll_until(supervisor, lambda: supervisor.reading and supervisor.children.keys() == {1, 2}) == {0: 99, 1: 17}
    assert supervisor.children[2].pid == kept
    assert supervisor.stop() == {1: 99, 2: 99}
    assert supervisor.children == {}


def test_a_child_that_does_not_end_in_time_is_killed(
    supervise: Callable[..., Supervisor], clock: Time, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = supervise(DEAF)
    supervisor.assign({0})
    poll_until(supervisor, lambda: supervisor.reading)
    supervisor.assign(())
    clock.now += 4.9
    supervisor.poll()
    assert supervisor.children[0].state == "finishing"
    assert caplog.messages == []
    clock.now += 0.2
    poll_until(supervisor, lambda: not supervisor.children)
    assert re.match("partition 0: did not end within 5 s and is killed", caplog.messages[-1])


def test_a_child_that_dies_is_started_again_after_a_while(
    supervise: Callable[..., Supervisor], clock: Time, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = supervise(GOOD, GOOD)
    supervisor.assign({0, 1})
    poll_until(supervisor, lambda: supervisor.reading)
    kept = supervisor.children[1].pid
    for pause in (1, 2, 4):
        os.kill(supervisor.children[0].pid, signal.SIGSEGV)
        poll_until(supervisor, lambda: 0 not in supervisor.children)
        assert (
            caplog.messages[-1] == f"partition 0: its process was killed by SIGSEGV; it is started again in {pause} s"
        )
        clock.now += pause - 0.1
        supervisor.poll()
        assert 0 not in supervisor.children
        clock.now += 0.2
        poll_until(supervisor, lambda: supervisor.reading)
    assert supervisor.children[1].pid == kept
    # One that was well for a minute did not die of its start.
    clock.now += 61
    os.kill(supervisor.children[0].pid, signal.SIGTERM)
    poll_until(supervisor, lambda: 0 not in supervisor.children)
    assert caplog.messages[-1].endswith("was stopped from outside; it is started again in 1 s")


def test_a_child_that_fails_is_everybodys_failure(supervise: Callable[..., Supervisor]) -> None:
    supervisor = supervise(GOOD, FAILING, "raise SystemExit(3)")
    supervisor.assign({0, 1})
    with pytest.raises(DaemonError, match=r"^partition 1: the disk is on fire$"):
        poll_until(supervisor, lambda: False)
    supervisor.assign({0, 2})
    with pytest.raises(DaemonError, match=r"^partition 2: its process ended with status 3$"):
        poll_until(supervisor, lambda: False)
    supervisor.assign({0})  # the other one would fail again while this one is waited for
    poll_until(supervisor, lambda: supervisor.children[0].reading)
    assert supervisor.stop() == {0: 99}


def test_ctrl_c_at_the_terminal_is_for_the_member_alone(supervise: Callable[..., Supervisor]) -> None:
    supervisor = supervise(GOOD)
    supervisor.assign({0})
    poll_until(supervisor, lambda: supervisor.reading)
    assert os.getpgid(supervisor.children[0].pid) != os.getpgid(0)


@pytest.fixture(autouse=True)
def _hear(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
