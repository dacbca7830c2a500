"""The children of a member: started, heard, ended, started again; here they are small programs instead of daemons."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.group.child import Child
from streamkernel.daemon.group.crew import Crew
from streamkernel.daemon.group.page import member_page

_SECONDS = 60

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


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hire(clock: Clock) -> Iterator[Callable[..., Crew]]:
    """Make crews of these programs, by partition, and see that nothing is left of them."""
    crews: list[Crew] = []

    def make(*programs: str, given: bytes = b"") -> Crew:
        def start(partition: int) -> Child:
            return Child([sys.executable, "-I", "-S", "-c", programs[partition]], given, clock=clock)

        crews.append(Crew(start, grace=5.0, clock=clock))
        return crews[-1]

    yield make
    for crew in crews:
        for child in crew.children.values():
            child.kill()
        wait_until(lambda crew=crew: all(child.ended() is not None for child in crew.children.values()))


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def watch_until(crew: Crew, holds: Callable[[], bool]) -> dict[int, int]:
    """Watch until something holds, and give everything that was saved meanwhile."""
    saved: dict[int, int] = {}

    def look() -> bool:
        saved.update(crew.watch())
        return holds()

    wait_until(look)
    return saved


def test_one_child_for_each_partition_that_is_wanted(hire: Callable[..., Crew]) -> None:
    crew = hire(GOOD, GOOD, GOOD, given=b"17")
    assert crew.reading  # of nothing
    crew.want({0, 2})
    assert not crew.reading
    assert watch_until(crew, lambda: crew.reading) == {0: 17, 2: 17}
    assert crew.addresses() == {0: ("127.0.0.1", 1234), 2: ("127.0.0.1", 1234)}
    assert crew.watch() == {}
    kept = crew.children[2].pid
    crew.want({1, 2})
    assert crew.children[0].state == "finishing"
    assert watch_until(crew, lambda: crew.reading and crew.children.keys() == {1, 2}) == {0: 99, 1: 17}
    assert crew.children[2].pid == kept
    assert crew.dismiss() == {1: 99, 2: 99}
    assert crew.children == {}


def test_a_partition_that_comes_back_waits_for_its_old_child(hire: Callable[..., Crew]) -> None:
    crew = hire(GOOD)
    crew.want({0})
    watch_until(crew, lambda: crew.reading)
    before = crew.children[0].pid
    crew.want(())
    crew.want({0})
    assert not crew.reading
    watch_until(crew, lambda: crew.reading)
    assert crew.children[0].pid != before


def test_a_child_that_does_not_end_in_time_is_killed(
    hire: Callable[..., Crew], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    crew = hire(DEAF)
    crew.want({0})
    watch_until(crew, lambda: crew.reading)
    crew.want(())
    clock.now += 4.9
    crew.watch()
    assert crew.children[0].state == "finishing"
    assert caplog.messages == []
    clock.now += 0.2
    watch_until(crew, lambda: not crew.children)
    assert re.match("partition 0: was not done after 5 s and is killed", caplog.messages[-1])


def test_lost_partitions_are_dropped_at_once(hire: Callable[..., Crew], caplog: pytest.LogCaptureFixture) -> None:
    crew = hire(GOOD, GOOD)
    crew.want({0, 1})
    watch_until(crew, lambda: crew.reading)
    pids = {partition: child.pid for partition, child in crew.children.items()}
    crew.kill({0, 1, 7})
    crew.want({0})
    # Nothing is said by a child that is killed; the one that is ours again begins anew.
    assert watch_until(crew, lambda: crew.reading and crew.children.keys() == {0}) == {0: 0}
    assert crew.children[0].pid != pids[0]
    assert [line.partition(":")[0] for line in caplog.messages] == ["partition 0", "partition 1"]


def test_a_child_that_dies_is_started_again_after_a_while(
    hire: Callable[..., Crew], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    crew = hire(GOOD, GOOD)
    crew.want({0, 1})
    watch_until(crew, lambda: crew.reading)
    kept = crew.children[1].pid
    for pause in (1, 2, 4):
        os.kill(crew.children[0].pid, signal.SIGSEGV)
        watch_until(crew, lambda: 0 not in crew.children)
        assert (
            caplog.messages[-1] == f"partition 0: its process was killed by SIGSEGV; it is started again in {pause} s"
        )
        clock.now += pause - 0.1
        crew.watch()
        assert 0 not in crew.children
        clock.now += 0.2
        watch_until(crew, lambda: crew.reading)
    assert crew.children[1].pid == kept
    # One that was well for a minute did not die of its start.
    clock.now += 61
    os.kill(crew.children[0].pid, signal.SIGTERM)
    watch_until(crew, lambda: 0 not in crew.children)
    assert caplog.messages[-1].endswith("was told by somebody else to end; it is started again in 1 s")


def test_a_child_that_fails_is_everybodys_failure(hire: Callable[..., Crew]) -> None:
    crew = hire(GOOD, FAILING, "raise SystemExit(3)")
    crew.want({0, 1})
    with pytest.raises(DaemonError, match=r"^partition 1: the disk is on fire$"):
        watch_until(crew, lambda: False)
    crew.want({0, 2})
    with pytest.raises(DaemonError, match=r"^partition 2: its process ended with status 3$"):
        watch_until(crew, lambda: False)
    watch_until(crew, lambda: crew.children[0].reading)
    assert crew.dismiss() == {0: 99}


def test_what_fails_while_it_ends_is_said_and_no_more(
    hire: Callable[..., Crew], caplog: pytest.LogCaptureFixture
) -> None:
    ending = FAILING.replace("print", "import time, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {15})\nprint")
    ending = ending.replace("raise", "signal.sigwait({15})\nraise")
    crew = hire(ending)
    crew.want({0})
    watch_until(crew, lambda: 0 in crew.children and crew.children[0].failure is not None)
    assert crew.dismiss() == {}
    assert caplog.messages == ["partition 0: ended with a failure: the disk is on fire"]


def test_ctrl_c_at_the_terminal_is_for_the_member_alone(hire: Callable[..., Crew]) -> None:
    crew = hire(GOOD)
    crew.want({0})
    watch_until(crew, lambda: crew.reading)
    assert os.getpgid(crew.children[0].pid) != os.getpgid(0)


def test_the_page_shows_every_partition(hire: Callable[..., Crew]) -> None:
    waiting = GOOD.replace('["reading", 1]', '["waiting", "process 7 on <b>"]')
    crew = hire(GOOD, waiting, given=b"12345")
    crew.want({0, 1})
    watch_until(crew, lambda: all(child.saved is not None for child in crew.children.values()))
    page = member_page("a.yaml", "group <g>", [0, 1, 2], crew.children)
    rows = re.findall(r"<tr>(.*)</tr>", page)
    assert rows[1].endswith("<td>reading</td><td>12,345</td>")
    assert rows[2].endswith("<td>waiting for process 7 on &lt;b&gt;</td><td>12,345</td>")
    assert rows[3] == "<td>2</td><td></td><td>waiting to be started</td><td></td>"
    assert "group &lt;g&gt;; partitions held: 3" in page


@pytest.fixture(autouse=True)
def _hear(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)


def test_large_configurations_get_through(hire: Callable[..., Crew], tmp_path: Path) -> None:
    copy = f"""
import json, shutil, sys
with open({str(tmp_path / "copy")!r}, "wb") as file:
    shutil.copyfileobj(sys.stdin.buffer, file)
print(json.dumps(["reading", 1]), flush=True)
import time; time.sleep(600)
"""
    crew = hire(copy, given=b"x" * 300_000)
    crew.want({0})
    watch_until(crew, lambda: crew.reading)
    assert (tmp_path / "copy").stat().st_size == 300_000
