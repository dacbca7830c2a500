"""The status of a member: its own, and what its children say of theirs when they are asked for it."""

from __future__ import annotations

import bisect
import json
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from streamkernel.connectors.encode import to_json
from streamkernel.daemon.base.health import Health, NoStatusError
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.group.child import Child
from streamkernel.daemon.group.federation import ask
from streamkernel.daemon.group.supervisor import Supervisor
from streamkernel.daemon.monitoring.status import STATUS_VERSION
from streamkernel.daemon.monitoring.status_page import publish_page

__all__ = ["MemberStatus"]

# However many look at the page, the children are asked once in this time.
_KEPT_SECONDS = 1.0
# No point of a history is newer.
_NO_HISTORY = "/api/status?since=99999999999"


class MemberStatus:
    """Answers /api/status for a member of a group, and gives the page that shows it.

    Parameters
    ----------
    plan
        The configuration.
    health
        The state of the member; its page and its status are set to these.
    supervisor
        Has the children.
    membership
        Gives a phrase on the group, or what keeps the member out of it.
    trouble
        Gives what is wrong with the member itself; None: nothing.
    clock
        Gives seconds, and never goes back.

    """

    def __init__(
        self,
        plan: Plan,
        health: Health,
        supervisor: Supervisor,
        membership: Callable[[], str],
        trouble: Callable[[], str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._health = health
        self._supervisor = supervisor
        self._membership = membership
        self._trouble = trouble
        self._clock = clock
        self._started = time.time()
        self._basic_auth = None if plan.config.metrics is None else plan.config.metrics.basic_auth
        self._asking = threading.Lock()
        self._made: tuple[float, bytes] | None = None
        self._answers: dict[int, tuple[float, tuple[int, str]]] = {}  # by partition, when and what its child said
        self._pipelines = publish_page(plan, health, self.to_json)

    def to_json(self, since: float = 0.0, partition: int | None = None) -> bytes | None:
        """Return the status of the member, or of the child of a partition with its history; None where it has none.

        Raises
        ------
        NoStatusError
            Where that child does not answer.

        """
        if partition is not None:
            return self._of_partition(partition, since)
        with self._asking:  # who comes while the children are asked has their answer, too
            if self._made is None or self._clock() - self._made[0] >= _KEPT_SECONDS:
                body = to_json(self._status())
                self._made = self._clock(), body
            return self._made[1]

    def _of_partition(self, partition: int, since: float) -> bytes | None:
        if partition not in self._supervisor.assigned:
            return None
        with self._asking:
            now = self._clock()
            self._answers = {at: one for at, one in self._answers.items() if now - one[0] < _KEPT_SECONDS}
            if partition not in self._answers:
                addresses = {at: one for at, one in self._supervisor.addresses().items() if at == partition}
                found = ask(addresses, "/api/status", self._basic_auth)
                self._answers[partition] = self._clock(), found.get(partition, (0, "it is not there yet"))
            _, (code, text) = self._answers[partition]
        if code != HTTPStatus.OK:
            raise NoStatusError(f"partition {partition}: {text.strip()}")
        status = json.loads(text)
        history = status["history"]
        first = bisect.bisect_right(history["time"], since)
        history["time"] = history["time"][first:]
        history["series"] = {name: points[first:] for name, points in history["series"].items()}
        return to_json(status)

    def _status(self) -> dict[str, Any]:
        children, held = self._supervisor.children.copy(), self._supervisor.assigned
        answers = ask(self._supervisor.addresses(), _NO_HISTORY, self._basic_auth)
        partitions = [_partition(at, children.get(at), answers.get(at)) for at in sorted({*held, *children})]
        state, detail = self._state(partitions)
        plan = self._plan
        return {
            "version": STATUS_VERSION,
            "kind": "member",
            "now": round(time.time(), 3),
            "configuration": plan.path.name,
            "mode": plan.config.mode,
            "streamkernel": version("streamkernel"),
            "source": self._membership(),
            "state": {"name": state, "detail": detail},
            "started": round(self._started, 3),
            "held": sorted(held),
            "partitions": partitions,
            "pipelines": self._pipelines,
        }

    def _state(self, partitions: list[dict[str, Any]]) -> tuple[str, str | None]:
        """Return the state of the member as its probes have it, of what the children just said."""
        if trouble := self._trouble():
            return "trouble", trouble
        if not self._health.ready:
            return "not ready", None
        for name in ("trouble", "obstacle"):
            for one in partitions:
                if one["problem"] is not None and name == "trouble":
                    return name, f"partition {one['partition']}: {one['problem']}"
                state = (one["status"] or {}).get("state", {})
                if state.get("name") == name:
                    return name, f"partition {one['partition']}: {state['detail']}"
        return "ready", None


def _partition(partition: int, child: Child | None, answer: tuple[int, str] | None) -> dict[str, Any]:
    """Return what is known of a partition: its process, and the status that this gave."""
    found: dict[str, Any] = {
        "partition": partition,
        "pid": None if child is None else child.pid,
        "process": "waiting to be started" if child is None else child.state,
        "saved": None if child is None else child.saved,
        "problem": None,
        "status": None,
    }
    if answer is not None:
        status, text = answer
        try:
            found["status"] = _without_bulk(json.loads(text)) if status == HTTPStatus.OK else None
        except ValueError:
            status, text = 0, "its answer is not JSON"
        if status != HTTPStatus.OK:
            found["problem"] = text.strip()
    return found


def _without_bulk(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return a status without what the member has once for all, and without the empty history."""
    return {name: value for name, value in status.items() if name not in ("pipelines", "history")}
