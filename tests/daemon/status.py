"""The status of a run without the run: a board, what its loop would publish, and what is served of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from streamkernel.connectors.ports import Position
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.status import StatusBoard
from streamkernel.daemon.monitoring.view import View
from tests.daemon.conftest import Home


def letter(raw: str, detail: str = "not a number", reason: str = "parse") -> dict[str, Any]:
    """A dead letter as the loop makes it."""
    position = {"partition": 0, "offset": 7}
    return {"reason": reason, "detail": detail, "position": position, "encoding": "utf-8", "raw": raw}


class Time:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class BoardedRun:
    """A board that follows a run of which only the views are there."""

    def __init__(self, home: Home, source: str = "a file", **sections: Any) -> None:
        self.plan = prepare(home.configure(**{"metrics": {"port": 0}, **sections}))
        self.health = Health(ready=True)
        self.time = Time()
        exporter = Exporter(self.plan.model, list(self.plan.report), 1000)
        self.board = StatusBoard(self.plan, self.health, exporter, self.time, self.time)
        self.places: dict[str, dict[int, Position]] = {"records": {}}
        coordinator: Any = SimpleNamespace(schedule=None, processor=SimpleNamespace(taken=0))
        self.show = self.board.follow(lambda: source, coordinator, self.places, lambda _: None)

    def status(self, since: float = 0.0) -> dict[str, Any]:
        body = self.board.to_json(since)
        assert body is not None
        status: dict[str, Any] = json.loads(body, parse_constant=_no_json)
        return status

    def learn(self, seconds: float = 5.0, **figures: Any) -> None:
        """Let time pass and publish a view."""
        self.time.now += seconds
        self.show(View(**figures))


def _no_json(name: str) -> float:
    raise AssertionError(f"{name} is no JSON")


def account(**counts: int) -> Mapping[str, int]:
    """The records of a run."""
    return {"consumed": 0, "predicted": 0, "learned": 0, "unlabeled": 0, "skipped": 0, "dead": 0, **counts}
