"""The rings of the suite: which tests need only this process, which start others, and which take minutes.

Ring 1 (`make test`) runs in one process. Ring 2 (`make test-integration`) starts daemons, brokers, browsers, servers.
Ring 3 (`make test-long`) holds the tests that are marked ``long``. A test that uses a fixture of `RESOURCES` belongs
to ring 2: nobody sets that marker by hand. A test of ring 1 that starts a process or sleeps fails, except for those of
`END_TO_END`.
"""

from __future__ import annotations

import multiprocessing.process
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest

__all__ = ["END_TO_END", "RESOURCES", "RINGS", "forbidden", "ring_of"]

RESOURCES = {
    "broker": "broker",
    "installed": "broker",
    "local_broker": "broker",
    "own_broker": "broker",
    "site": "broker",
    "browser": "browser",
    "prometheus": "prometheus",
    "jsonnet": "processes",
    "launcher": "processes",
    "processes": "processes",
    "promtool": "processes",
}
"""The fixtures that stand for something outside this process, each with its shard of ring 2."""

SHARDS = ("broker", "browser", "prometheus", "processes")
"""The order of ring 2: workers that steal work begin at different shards, so that one waits while another computes."""

END_TO_END = ("tests/daemon/test_run.py::test_a_signal_ends_it_well_and_a_restart_goes_on",)
"""Tests of ring 1 that may start processes: the main job from end to end, over files."""

RINGS = pytest.StashKey[dict[str, set[int]]]()
"""The rings of the collected tests by file and function, whatever the class and the parameters."""

_LONGEST_WAIT = 2.0  # seconds
_TESTS = str(Path(__file__).parent) + os.sep
_WAITING = str(Path(__file__).with_name("processes.py"))
_COMPILING = str(Path(__file__).parents[1] / "streamkernel" / "compute" / "jit.py")
_PROCESSES = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "pty.spawn"})

forbidden: list[str] = []
"""What the running test did that ring 1 forbids."""

_waited_for_compiler: list[float] = []


def ring_of(item: pytest.Item) -> int:
    """Return the ring of a test: 1 in this process, 2 with other processes, 3 for minutes."""
    if item.get_closest_marker("long"):
        return 3
    return 2 if item.get_closest_marker("integration") else 1


def _watch(event: str, arguments: tuple[object, ...], processes: frozenset[str] = _PROCESSES) -> None:
    # A default: as the interpreter ends, the names of this module are gone. On a new machine matplotlib asks for fonts.
    if event in processes and arguments[:1] != ("fc-list",):
        forbidden.append(f"starts a process ({event}: {str(arguments[:2])[:200]})")


def _sleep(seconds: float, slept: object = time.sleep) -> None:
    """Sleep, and note it where the code of a test asks for it, not that of a server's thread."""
    caller = sys._getframe(1).f_code.co_filename
    if caller.startswith(_TESTS) and caller != _WAITING and threading.current_thread() is threading.main_thread():
        forbidden.append(f"sleeps for {seconds} s")
    start = time.perf_counter()
    slept(seconds)  # type: ignore[operator]
    if caller == _COMPILING:  # another worker compiles the same function
        _waited_for_compiler.append(time.perf_counter() - start)


def _begin(
    process: multiprocessing.process.BaseProcess,
    started: Callable[[multiprocessing.process.BaseProcess], None] = multiprocessing.process.BaseProcess.start,
) -> None:
    """Start a process of multiprocessing, of which no audit event tells, and note it."""
    forbidden.append(f"starts a process ({process.name})")
    started(process)


sys.addaudithook(_watch)
time.sleep = _sleep
multiprocessing.process.BaseProcess.start = _begin  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def processes() -> None:
    """Stand for the processes that a test starts by its own code: the test belongs to ring 2."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put each test into its ring and shard."""
    order: dict[pytest.Item, int] = {}
    for item in items:
        if "spark" in item.path.parent.parts:  # each is a session, or several, of Java
            item.add_marker(pytest.mark.long)
        used = {RESOURCES[name] for name in getattr(item, "fixturenames", ()) if name in RESOURCES}
        order[item] = min((SHARDS.index(name) for name in used), default=len(SHARDS))
        if used and _name(item) not in END_TO_END:
            item.add_marker(pytest.mark.integration)
    items.sort(key=order.__getitem__)
    rings = config.stash.setdefault(RINGS, {})
    for item in items:
        path, *_, function = _name(item).split("::")
        rings.setdefault(f"{path}::{function}", set()).add(ring_of(item))


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _clocks() -> tuple[float, float, float]:
    """Return the wall time, the processor time with that of children, and how long threads waited for a core."""
    delay = 0
    with suppress(OSError):  # on another system than Linux
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{thread}/schedstat") as file:  # or it has ended
                delay += int(file.read().split()[1])
    return time.perf_counter(), sum(os.times()[:4]), delay / 1e9


@pytest.fixture(autouse=True)
def no_client_left(request: pytest.FixtureRequest) -> Generator[None, None, None]:
    """Fail a test of ring 1 that leaves a client of Kafka running: its thread would draw numbers and log in others."""
    yield
    for thread in threading.enumerate() if ring_of(request.node) == 1 else ():
        if thread.name.startswith("kafka-io-"):
            thread.join(60)  # one that is closing may look for its broker for half a minute
            assert not thread.is_alive(), f"{thread.name} still runs"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test of ring 1 that starts a process, sleeps, or (in CI) waits for long."""
    if ring_of(item) > 1 or _name(item) in END_TO_END:
        yield
        return
    forbidden.clear()
    _waited_for_compiler.clear()
    before = _clocks() if "CI" in os.environ else None
    yield
    if forbidden:
        pytest.fail(f"a test of ring 1 {forbidden[0]}: use a fixture of tests/rings.py", pytrace=False)
    if before is not None:
        wall, work, delay = (after - start for start, after in zip(before, _clocks(), strict=True))
        if (waited := wall - work - delay - sum(_waited_for_compiler)) > _LONGEST_WAIT:
            pytest.fail(f"a test of ring 1 waits {waited:.1f} s without the processor", pytrace=False)
