"""A plugin of pytest that collects once and runs tests in forks: of one chunk of tests, or under one mutant.

It runs in an instrumented copy of the checkout, on `Orders`.
"""

from __future__ import annotations

import builtins
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.forks import Fork, Ran, cpu_used, cpu_used_by, left_by
from tests.mutants.orders import HEAVY, Orders

# What a test may take under a mutant before it counts as hanging, of the processor and of the clock: the machine may be
# busy with other work. All tests of one mutant together may wait for `_WALL_SECONDS`.
_CPU_PATIENCE, _CPU_TIMES = 10.0, 10.0
_PATIENCE, _TIMES = 60.0, 20.0
_WALL_SECONDS = 600.0
# How many tests a fork runs of those whose reach is measured, and what it spends on the cases of one test function.
_ENOUGH = 2000
_FUNCTION_CPU_SECONDS = 3.0


def _like(test: str, names: list[str]) -> list[str]:
    """Return the tests of a function that has other parameters by now, else those of its file."""
    function, file = test.partition("[")[0], test.partition("::")[0]
    return [one for one in names if one.partition("[")[0] == function] or [
        one for one in names if one.startswith(f"{file}::")
    ]


class Server:
    """Runs the work of the orders in a few forks at once."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._items: dict[str, pytest.Item] = {}
        self._hunted: dict[int, list[str]] = {}
        self._failed = self._skipped = False
        self._sound: dict[str, bool] = {}
        self._count = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        names = {item.nodeid: None for item in items}
        self._hunted = {
            number: [found for test in tests for found in ([test] if test in names else _like(test, list(names)))]
            for number, tests in self._orders.mutants.items()
        }
        wanted = {test for tests in self._hunted.values() for test in tests}
        known, heavy = set(self._orders.passed), self._orders.heavy
        items[:] = [
            item
            for item in items
            if (item.nodeid in wanted if wanted else item.nodeid not in known)
            and (heavy is None or bool(HEAVY & set(getattr(item, "fixturenames", ()))) is heavy)
        ]
        self._items = {item.nodeid: item for item in items}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed
        self._skipped |= report.skipped
        if report.failed and os.environ.get("MUTANTS_SAY"):
            print(report.longreprtext[-3000:], file=sys.__stdout__)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Note what a fixture of many tests reaches under its own name, for all of them."""
        switch = getattr(builtins, "mutants_switch", None)
        if fixturedef.scope == "function" or switch is None:
            return (yield)
        before = switch.test
        switch.begin(_name_of(fixturedef))
        try:
            return (yield)
        finally:
            switch.begin(before)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            print("not collected", flush=True)
        works = self._hunts() if self._orders.mutants else self._chunks(list(session.items))
        self._warm_up(session)
        waiting = list(works)
        waiting.reverse()
        forks: list[Fork] = []
        while forks or waiting:
            while waiting and len(forks) < self._orders.jobs:
                self._go_on(session, forks, waiting.pop(), None)
            readable, _, _ = select.select([each.read for each in forks], [], [], 1.0)
            for fork in list(forks):
                if fork.read in readable and not self._take(fork):
                    forks.remove(fork)
                    self._bury(fork)
                    self._go_on(session, forks, fork.work, fork.ran)
                elif fork.running and self._hangs(fork):
                    forks.remove(fork)
                    fork.ran.failed, fork.ran.hung = fork.running, True
                    self._say(test=fork.running, outcome="hung", seconds=round(time.monotonic() - fork.begun, 3))
                    self._bury(fork)
                    self._go_on(session, forks, fork.work, fork.ran)
        return True

    def _hangs(self, fork: Fork) -> bool:
        usual = self._orders.seconds.get(fork.running, 10.0)
        longest = _CPU_PATIENCE + _CPU_TIMES * usual if self._orders.mutants else self._orders.longest
        used = cpu_used_by(fork.pid) - fork.cpu_before
        return time.monotonic() - fork.begun > _PATIENCE + _TIMES * usual or used > longest

    # The work: generators that ask for forks, each a mutant and the tests to run under it.

    def _chunks(self, items: list[pytest.Item]) -> Iterator[Generator[tuple[int, list[str]], Ran, None]]:
        chunk: list[str] = []
        for item, following in zip(items, [*items[1:], None], strict=True):
            chunk.append(item.nodeid)
            scoped = [_name_of(each) for each in _scoped(item)]
            self._say(test=item.nodeid, fixtures=scoped)
            if following is None or (len(chunk) >= _ENOUGH and following.path != item.path):
                yield self._chunk(chunk)
                chunk = []

    def _chunk(self, tests: list[str]) -> Generator[tuple[int, list[str]], Ran, None]:
        while tests:
            ran = yield 0, tests
            done = {*ran.tests, ran.failed}
            tests = [each for each in tests if each not in done] if done != {""} else []

    def _hunts(self) -> Iterator[Generator[tuple[int, list[str]], Ran, None]]:
        for number, tests in self._hunted.items():
            yield self._hunt(number, [each for each in tests if each in self._items])

    def _hunt(self, number: int, tests: list[str]) -> Generator[tuple[int, list[str]], Ran, None]:
        """Look for a test that fails under a mutant by itself, and passes by itself without it."""
        left, begun, cpu = tests, time.monotonic(), 0.0
        tried: list[str] = []
        killer, how = "", "survived"
        while left and not killer and cpu < self._orders.most:
            ran = yield number, left
            cpu += ran.cpu
            tried += ran.tests
            if not ran.failed:
                break
            alone = ran
            if ran.tests[:1] != [ran.failed] and not ran.hung:
                alone = yield number, [ran.failed]
            if alone.failed and ran.failed not in self._sound:
                control = yield 0, [ran.failed]
                self._sound[ran.failed] = not control.failed
            if alone.failed and self._sound[ran.failed]:
                killer, how = ran.failed, "hung" if alone.hung else "killed"
            left = left[left.index(ran.failed) + 1 :]
        self._say(
            mutant=number,
            verdict=how,
            test=killer,
            seconds=round(time.monotonic() - begun, 2),
            tried=[] if killer else tried,
        )

    def _say(self, **line: Any) -> None:
        with open(self._orders.out, "a") as file:
            file.write(json.dumps(line) + "\n")

    # Forks.

    def _go_on(
        self,
        session: pytest.Session,
        forks: list[Fork],
        work: Generator[tuple[int, list[str]], Ran, None],
        ran: Ran | None,
    ) -> None:
        try:
            number, tests = next(work) if ran is None else work.send(ran)
        except StopIteration:
            return
        forks.append(self._fork(session, work, number, tests))

    def _fork(
        self, session: pytest.Session, work: Generator[tuple[int, list[str]], Ran, None], number: int, tests: list[str]
    ) -> Fork:
        self._count += 1
        folder = Path(tempfile.mkdtemp(prefix=f"mutants-{os.getpid()}-{self._count}-"))
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            os.close(write)
            return Fork(pid, read, folder, time.monotonic(), work)
        status = 1
        try:
            os.close(read)
            os.setpgid(0, 0)
            os.environ["MUTANTS_TOKEN"] = folder.name
            if "MUTANTS_TRACE" in os.environ:
                builtins.mutants_switch.trace_into(f"{os.environ['MUTANTS_TRACE']}.{self._count}")  # type: ignore[attr-defined]
            session.config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
            self._run(session, number, tests, write)
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)

    def _run(self, session: pytest.Session, number: int, tests: list[str], write: int) -> None:
        def tell(**line: Any) -> None:
            os.write(write, (json.dumps(line) + "\n").encode())

        switch = builtins.mutants_switch  # type: ignore[attr-defined]
        switch.activate(number)
        items = [self._items[each] for each in tests]
        begun = time.monotonic()
        spent: dict[str, float] = defaultdict(float)
        for item, following in zip(items, [*items[1:], None], strict=True):
            function = item.nodeid.partition("[")[0]
            if not self._orders.mutants and spent[function] > _FUNCTION_CPU_SECONDS:
                session._setupstate.teardown_exact(following)
                continue
            tell(begin=item.nodeid)
            switch.begin(item.nodeid)
            self._failed = self._skipped = False
            started = cpu_used()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds = round(cpu_used() - started, 4)
            spent[function] += seconds
            tell(outcome="failed" if self._failed else "skipped" if self._skipped else "passed", seconds=seconds)
            if self._orders.mutants and (
                self._failed or cpu_used() > self._orders.most or time.monotonic() - begun > _WALL_SECONDS
            ):
                break
        switch.begin("")
        tell(cpu=cpu_used())
        session._setupstate.teardown_exact(None)

    def _take(self, fork: Fork) -> bool:
        """Read what a fork tells; whether it goes on."""
        read = os.read(fork.read, 1 << 16)
        *lines, fork.rest = (fork.rest + read).split(b"\n")
        for each in lines:
            line = json.loads(each)
            if "begin" in line:
                fork.running, fork.begun, fork.cpu_before = line["begin"], time.monotonic(), cpu_used_by(fork.pid)
            elif "cpu" in line:
                fork.ran.cpu = line["cpu"]
            else:
                fork.ran.tests.append(fork.running)
                if line["outcome"] == "failed" and self._orders.mutants:
                    fork.ran.failed = fork.running
                if not self._orders.mutants:
                    self._say(test=fork.running, **line)
                fork.running = ""
        if not read and fork.running:  # it died in the midst of a test
            fork.ran.failed = fork.running
            self._say(test=fork.running, outcome="died", seconds=0)
        return bool(read)

    def _bury(self, fork: Fork) -> None:
        os.close(fork.read)
        for _ in range(200):  # it may still take down its fixtures
            if fork.ran.hung or os.waitid(os.P_PID, fork.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
            time.sleep(0.05)
        for kill, whom in ((os.killpg, fork.pid), (os.kill, fork.pid), *((os.kill, each) for each in left_by(fork))):
            try:
                kill(whom, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        os.waitpid(fork.pid, 0)
        shutil.rmtree(fork.folder, ignore_errors=True)

    def _warm_up(self, session: pytest.Session) -> None:
        """Run a few short tests first, so that each fork has imported and compiled what they need."""
        short = [
            each
            for each in self._items.values()
            if self._orders.seconds.get(each.nodeid, 9.0) < 1.0 and each.nodeid.startswith("streamkernel/estimators")
        ]
        session.config._tmp_path_factory._basetemp = Path(tempfile.mkdtemp(prefix="mutants-warm-"))  # type: ignore[attr-defined]
        for item, following in zip(short, [*short[1:], None], strict=False):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _scoped(item: pytest.Item) -> list[pytest.FixtureDef[Any]]:
    info = getattr(item, "_fixtureinfo", None)
    definitions = [each[-1] for each in info.name2fixturedefs.values()] if info else []
    return [each for each in definitions if each.scope != "function"]


def _name_of(fixture: pytest.FixtureDef[Any]) -> str:
    return f"fixture {fixture.baseid}::{fixture.argname}"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Server(Orders.read(Path(os.environ["MUTANTS_ORDERS"]))), "mutants-server")
