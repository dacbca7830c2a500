"""The daemon of one partition, from inside: the ordinary one, which reports to its member of the group."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from streamkernel.connectors.kafka.reading.source import KafkaSource
from streamkernel.daemon.assembly.plan import plan_of
from streamkernel.daemon.base.errors import DirectoryInUseError
from streamkernel.daemon.base.parent_death import die_with
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.components.group_mode import partition_document
from streamkernel.daemon.config.document import parse
from streamkernel.daemon.failure import sentence
from streamkernel.daemon.group.first_partitions import is_added
from streamkernel.daemon.group.reports import Reporter
from streamkernel.daemon.monitoring.log import start_logging
from streamkernel.daemon.runtime import LifecycleListener, run
from streamkernel.daemon.stream.stop import Stopped, StopSignals

__all__ = ["LOCK_SECONDS", "PartitionListener", "PartitionSignals", "run_partition"]

_log = logging.getLogger(__name__)

LOCK_SECONDS = 0.5
_FLUSH_SECONDS = 1.0


def run_partition(path: Path, partition: int, member: int) -> int:
    """Run the daemon of one partition until it gets a signal to end, or the process of its member is gone.

    The text of the configuration comes on standard input, as the member read it when it started; the path is what to
    call it. Returns the exit status: 0 after a signal to end, 1 after a failure, which it reports to the member.
    """
    die_with(member)  # it would learn what the next owner of the partition learns too
    reporter = Reporter(_take_standard_output())
    try:
        document = partition_document(parse(sys.stdin.buffer.read().decode("utf-8-sig"), str(path)), partition)
        plan = plan_of(path, document)
        if isinstance(plan.source, KafkaSource):
            plan.source.came_later = is_added(Path(document.values["checkpoint"]["directory"]).parent, partition)
        start_logging(plan.config.log, plan.redact, partition)
        run(plan, listener=PartitionListener(reporter, member))
    except Stopped as stop:
        _log.info("%s", stop)
    except Exception as error:
        _log.debug("the full traceback", exc_info=error)
        reporter.send("failed", sentence(error))
        reporter.flush(_FLUSH_SECONDS)
        return 1
    return 0


class PartitionListener(LifecycleListener):
    """Reports to the member, and waits for the partition until nobody else holds it."""

    alone = False

    def __init__(self, reporter: Reporter, member: int) -> None:
        self._reporter = reporter
        self._member = member

    def signals(self) -> StopSignals:
        return PartitionSignals(self._member)

    def take(self, store: CheckpointStore, stopped: Callable[[], bool]) -> None:
        holder = None
        while True:
            try:
                store.lock()
                return
            except DirectoryInUseError as error:
                if error.holder != holder:
                    holder = error.holder
                    _log.info("waiting for %s, held by %s", store.directory, holder)
                    self._reporter.send("waiting", holder)
            if stopped():
                raise Stopped("stopped before it had the partition")
            time.sleep(LOCK_SECONDS)

    def serving(self, host: str, port: int) -> None:
        self._reporter.send("serving", [host, port])

    def reading(self, record: int) -> None:
        self._reporter.send("reading", record)

    def saved(self, offsets: Mapping[int, int]) -> None:
        for offset in offsets.values():
            self._reporter.send("saved", offset)


class PartitionSignals(StopSignals):
    """Stops when the member is gone, too. A second signal does no harm: a supervisor signals all processes at once."""

    def __init__(self, member: int) -> None:
        super().__init__()
        self._member = member

    def __call__(self) -> bool:
        if self.name is None and os.getppid() != self._member:
            self.name = "the end of its member"
        return super().__call__()

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.name = signal.Signals(number).name


def _take_standard_output() -> int:
    """Keep standard output for the reports: what anything else writes there goes to the log."""
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor
