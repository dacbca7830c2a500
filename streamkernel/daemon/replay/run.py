"""A replay from its start to its end: which letters are replayed, in which order, and what is saved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamkernel.connectors.columns.uses import empty_inputs
from streamkernel.connectors.ports import Record
from streamkernel.daemon.assembly import parts
from streamkernel.daemon.assembly.plan import plan_of
from streamkernel.daemon.assembly.processor import compared, make_processor
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.components.catalogue import REPLAY
from streamkernel.daemon.components.group_mode import group_of, partition_document
from streamkernel.daemon.config.document import document_of
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.config.schema import KafkaSinkConfig
from streamkernel.daemon.replay.accounting import ReplayAccounting
from streamkernel.daemon.replay.feed import ReplayFeed
from streamkernel.daemon.replay.letters import read_letters
from streamkernel.daemon.replay.outputs import open_outputs
from streamkernel.daemon.replay.report import ReplayReport
from streamkernel.daemon.replay.selection import LetterSelection
from streamkernel.daemon.replay.sources import open_sources
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator
from streamkernel.daemon.run_state.resume import lock_stopped, newest_of
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.loop import Checkpoints, Loop
from streamkernel.daemon.stream.stop import StopSignals

__all__ = ["replay"]

# How a record is decoded may be mended for a replay; what it is may not.
_MENDABLE = ("delimiter", "encoding", "multiline")


def replay(plan: Plan, path: Path) -> ReplayReport:
    """Predict and learn the mended dead letters of a file, each once, by the model of a configuration.

    They are learned after all that the checkpoint holds, in the order of the file. Those still dead stay in it.
    Of a group, the letters of each partition go to its own checkpoint.

    Parameters
    ----------
    plan
        The configuration that wrote them; how its source is decoded, and its limits, may be others.
    path
        JSON lines or CSV, as the daemon writes them.

    Raises
    ------
    ConfigError
        Where the configuration has no checkpoint, or is of a kind that cannot be replayed into.
    DaemonError, CheckpointError, ConnectorError, OSError
        When something fails, or the letters are not of this checkpoint; the message is one sentence.

    """
    if problems := REPLAY.problems(plan.config):
        raise ConfigError(*problems)
    _check_file(plan, path)
    report = ReplayReport(path)
    if group_of(plan.config) is None:
        _replay(plan, path, report)
        return report
    # Each partition has a model, a checkpoint and outputs of its own.
    for partition in sorted({one.place.partition for one in read_letters(path, plan.config.limits.max_record_bytes)}):
        if not report.stopped:
            document = partition_document(document_of(plan.raw), partition)
            _replay(plan_of(plan.path, document), path, report, partition)
    return report


def _replay(plan: Plan, path: Path, report: ReplayReport, partition: int | None = None) -> None:
    """Replay the letters of a file, or those of one partition, into a checkpoint, and report what became of them."""
    with ExitStack() as stack:
        stopped = stack.enter_context(StopSignals())
        store = parts.make_store(plan)
        assert store is not None
        lock_stopped(store, "replay", stack)
        plan, start = _restore(plan, store)
        sinks = open_outputs(plan, start, path, stack)
        letters = LetterSelection(plan, start, path, partition)
        n_ahead_before = report.n_ahead
        wanted = letters.count(report)
        n_ahead = report.n_ahead - n_ahead_before
        if sinks.mended and n_ahead:
            raise DaemonError(
                f"{path}: the last {n_ahead:,} letters are of records that the daemon reads again after it was "
                "killed: remove these lines, and replay again"
            )
        sources = open_sources(plan, start, wanted, stack)
        processor = make_processor(plan, start)
        coordinator = CheckpointCoordinator(plan, store, processor, sinks, start)
        accounting = ReplayAccounting(processor, start, report)
        coordinator.begin(stopped)
        if coordinator.schedule is not None:
            # The checkpoint before the replay stays: it is the way back.
            coordinator.schedule.resumed(processor.taken, whole=False)
        feed = ReplayFeed(
            letters.wanted(),
            sources,
            report,
            accounting.hand,
            lambda record: processor.kills(record, stopped),
            stopped,
        )
        checkpoints = _ReplayCheckpoints(coordinator, accounting)

        def empty(record: Record) -> list[str]:
            return empty_inputs(sources["records"].source, record)  # that of the plan is not open

        loop = Loop(
            compared(plan, feed, processor, start, place=str(path), empty=empty),
            processor,
            sinks,
            start.positions,
            accounting,
            checkpoints,
            stopped=stopped,
            at_work=stopped.at_work,
            watches_start=False,
        )
        report.stopped = loop.run() == "stopped"
        checkpoints.finish()


class _ReplayCheckpoints(Checkpoints):
    """Checkpoints of a replay, which moves no position: after a time, and at the end, where letters were replayed."""

    def __init__(self, coordinator: CheckpointCoordinator, accounting: ReplayAccounting) -> None:
        self._coordinator = coordinator
        self._accounting = accounting
        settings = coordinator.plan.config.checkpoint
        assert settings is not None
        self._every_seconds = settings.every_seconds
        self._saved_at = time.monotonic()

    def save_when_due(self) -> None:
        if self._accounting.changed and time.monotonic() - self._saved_at >= self._every_seconds:
            self._saved_at = time.monotonic()
            if self._coordinator.save():
                self._accounting.changed = False

    def finish(self) -> None:
        """Save what was replayed since the last checkpoint."""
        if self._accounting.changed and self._coordinator.schedule is not None:
            self._coordinator.schedule.moved()
            self._coordinator.finish()


def _check_file(plan: Plan, path: Path) -> None:
    output = plan.config.dead_letters
    if isinstance(output, KafkaSinkConfig) and not path.exists():
        given = output.bootstrap_servers
        servers = given if isinstance(given, str) else ",".join(given)
        written = "" if output.value_format == "json" else f", by a consumer that reads {output.value_format}"
        raise DaemonError(
            f"{path}: there is no such file, and replay does not read topics: write the letters to a file as "
            f"JSON lines{written}, for example with kafka-console-consumer.sh --topic {output.topic} --from-beginning "
            f"--bootstrap-server {servers} --isolation-level read_committed --timeout-ms 10000 > {path}"
        )


def _restore(plan: Plan, store: CheckpointStore) -> tuple[Plan, Start]:
    """Return the newest checkpoint, and the configuration as the checkpoints to come are to have it."""

    def use(checkpoint: Checkpoint) -> tuple[Plan, Start]:
        fitting = replace(plan, raw=_with_decoding_of(plan.raw, checkpoint.header))
        return fitting, resume.restore(fitting, checkpoint)

    return newest_of(store, use, ": dead letters are replayed into that of their run")


def _with_decoding_of(raw: Mapping[str, Any], saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration in which records are decoded as before: what is mended is for the replay alone."""
    changed = dict(raw)
    changed["source"] = {**raw["source"], **_decoding(saved["source"]["config"])}
    if raw.get("labels") and saved.get("labels"):
        source = {**raw["labels"]["source"], **_decoding(saved["labels"]["config"]["source"])}
        changed["labels"] = {**raw["labels"], "source": source}
    return changed


def _decoding(source: Mapping[str, Any]) -> dict[str, Any]:
    return {key: source[key] for key in _MENDABLE if key in source}
