"""A member of a group whose children are boards, each behind a real HTTP server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.group.member_status import MemberStatus
from tests.daemon.conftest import Home
from tests.daemon.endpoint import serving
from tests.daemon.status import BoardedRun


def begin_runs(homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> list[BoardedRun]:
    """Begin the runs of two partitions, each in a home of its own."""
    runs = []
    for name in ("one", "two"):
        home = homes(name)
        (home.folder / "stream.csv").write_text("a,y\n")
        monkeypatch.chdir(home.folder)
        runs.append(BoardedRun(home))
    return runs


class BoardedMember:
    """The member of three partitions: the first two are read, and one waits for its process."""

    def __init__(self, plan: Plan, runs: list[BoardedRun], stack: ExitStack, **settings: Any) -> None:
        self.asked: list[float] = []
        addresses = {}
        for number, run in enumerate(runs):
            self._count(run.health)
            host = urlsplit(stack.enter_context(serving(run.health, **settings)))
            addresses[number] = (str(host.hostname), int(host.port or 0))
        children = {
            number: SimpleNamespace(pid=4000 + number, state="reading", saved=1000 * number) for number in addresses
        }
        self.addresses = addresses
        assigned = frozenset(range(len(runs) + 1))
        supervisor: Any = SimpleNamespace(children=children, assigned=assigned, addresses=self.addresses.copy)
        self.health = Health(ready=True)
        self.now = 0.0
        self.page = MemberStatus(
            plan, self.health, supervisor, lambda: "group <g>", lambda: None, clock=lambda: self.now
        )

    def _count(self, health: Health) -> None:
        answer = health.status
        assert answer is not None

        def counted(since: float, partition: int | None) -> bytes | None:
            self.asked.append(time.monotonic())
            return answer(since, partition)

        health.status = counted

    def status(self, partition: int | None = None, since: float = 0.0) -> dict[str, Any]:
        body = self.page.to_json(since, partition)
        assert body is not None
        status: dict[str, Any] = json.loads(body)
        return status
