"""A member of a consumer group: holds its place there, and keeps a daemon running for each partition it is given."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from streamkernel.connectors.kafka.group.membership import Membership
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.base.notifier import Notifier
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import KafkaSourceConfig, MetricsConfig
from streamkernel.daemon.config.yaml_text import dump
from streamkernel.daemon.group.child import Child
from streamkernel.daemon.group.federation import Federation, ask
from streamkernel.daemon.group.first_partitions import note_first_partitions
from streamkernel.daemon.group.member_status import MemberStatus
from streamkernel.daemon.group.supervisor import Supervisor
from streamkernel.daemon.http.server import Server
from streamkernel.daemon.stream.stop import StopSignals

__all__ = ["make_membership", "run_member"]

_log = logging.getLogger(__name__)

_TURN_SECONDS = 0.2
# All of it must be over in ten seconds, and the children may take most of them.
_END_SECONDS, _LEAVE_SECONDS = 5.0, 0.5
_SILENCE_SECONDS = 120.0


def run_member(plan: Plan) -> None:
    """Take part in the group of a configuration until a signal comes.

    Raises
    ------
    ConnectorError
        When the group cannot be joined or stayed in.
    DaemonError
        When a partition cannot be gone on with; those of the others were ended in good order.
    ServerError, OSError
        When the metrics cannot be served, or no process be started.

    """
    # Partitions come and go for months: each is to be begun with what was checked when the member started.
    text = dump(plan.raw).encode()
    with contextlib.ExitStack() as stack:
        stopped = stack.enter_context(StopSignals())
        membership = make_membership(plan)
        supervisor = Supervisor(lambda partition: _start(plan, text, partition))
        member = _Member(plan, membership, supervisor)
        # It takes the socket out of the environment, which the children have from us.
        stack.enter_context(member.notifier(stopped))
        if plan.config.metrics is not None:
            stack.callback(member.serve(plan.config.metrics).close)
        try:
            membership.open()
            while not stopped():
                member.turn()
            _log.info("%s came: leaving %s", stopped.name, membership.describe())
        finally:
            member.leave()
        _log.info("ended: the next owners of the partitions continue from their last checkpoints")


def make_membership(plan: Plan) -> Membership:
    """Make the membership a configuration asks for, not joined yet."""
    source = plan.config.source
    assert isinstance(source, KafkaSourceConfig)
    assert source.group is not None
    return Membership(source.topic, source.bootstrap_servers, source.group, source.options.given())


class _Member:
    """A member at work: follows the assignments of the group, and answers for its health."""

    def __init__(self, plan: Plan, membership: Membership, supervisor: Supervisor) -> None:
        assert plan.config.checkpoint is not None
        self._directory = Path(plan.config.checkpoint.directory)
        self._begun = False
        self._redact = plan.redact
        self._membership = membership
        self._supervisor = supervisor
        self._health = Health()
        self._health.trouble = self._trouble
        self._health.obstacle = lambda: self._ask("/readyz")
        self._health.summary = lambda: f"{_listed(supervisor.assigned)} of {membership.describe()}"
        self._turned = time.monotonic()
        if plan.config.metrics is not None:
            MemberStatus(plan, self._health, supervisor, self._phrase, self._own_trouble)

    def notifier(self, stopped: StopSignals) -> Notifier:
        """Return what tells the service manager of the member's health."""
        return Notifier(self._health, stopped)

    def serve(self, settings: MetricsConfig) -> Server:
        """Serve the metrics of all children, and the member's health."""
        federation = Federation(self._supervisor.addresses, lambda: len(self._supervisor.assigned), settings.basic_auth)
        server = Server(settings, federation.registry, self._health)
        _log.info("%s", server.describe())
        return server

    def turn(self) -> None:
        """Wait for news from the group for a moment, and see that everybody works on what is ours."""
        held, lost, joined = self._membership.turn(_TURN_SECONDS)
        if held and not self._begun:
            note_first_partitions(self._directory, self._membership.partitions)
            self._begun = True
        self._supervisor.kill(lost)
        if held != self._supervisor.assigned:
            self._tell(held)
            self._supervisor.assign(held)
        self._membership.commit(self._supervisor.poll())
        self._health.ready = joined and self._supervisor.reading
        self._turned = time.monotonic()

    def leave(self) -> None:
        """Let the others have the partitions, and wait for our children to be done with them."""
        deadline = time.monotonic() + _END_SECONDS
        self._health.ready = False
        self._supervisor.assign(())
        self._membership.leave()
        self._membership.commit(self._supervisor.stop())
        # The group is left long before, unless no broker answers.
        self._membership.close(max(_LEAVE_SECONDS, deadline - time.monotonic()))

    def _tell(self, held: frozenset[int]) -> None:
        before = self._supervisor.assigned
        parts = [f"{what} {_listed(some)}" for what, some in (("new", held - before), ("gone", before - held)) if some]
        _log.info("%s: holding %s (%s)", self._membership.describe(), _listed(held), "; ".join(parts))

    def _trouble(self) -> str | None:
        return self._own_trouble() or self._ask("/healthz")

    def _own_trouble(self) -> str | None:
        silence = time.monotonic() - self._turned
        if silence > _SILENCE_SECONDS:
            return f"the member has made no progress for {silence:.0f} s"
        problem = self._membership.health_problem
        return None if problem is None else self._redact(problem)

    def _phrase(self) -> str:
        """Return the group the member is in, or what keeps it out."""
        return self._redact(self._membership.health_problem or self._membership.describe())

    def _ask(self, path: str) -> str | None:
        """Ask the children what is wrong with them; None where nothing is."""
        for partition, (status, text) in ask(self._supervisor.addresses(), path).items():
            if status != 200:
                return f"partition {partition}: {text.strip()}"
        return None


def _start(plan: Plan, text: bytes, partition: int) -> Child:
    # Found where we were found, whatever folder that was started in; and nothing else that may lie about there.
    path = os.pathsep.join(part or os.getcwd() for part in sys.path)
    return Child(_command(plan, partition), text, {**os.environ, "PYTHONPATH": path})


def _command(plan: Plan, partition: int) -> Sequence[str]:
    program = [sys.executable, "-P", "-m", "streamkernel", "run", str(plan.path)]
    return [*program, "--partition", str(partition), "--member", str(os.getpid())]


def _listed(partitions: Collection[int]) -> str:
    """Return partitions as a phrase.

    Examples
    --------
    >>> _listed({3, 1}), _listed(())
    ('partitions 1, 3', 'no partition')

    """
    return f"partitions {', '.join(map(str, sorted(partitions)))}" if partitions else "no partition"
