"""What `check` tries: every connection a run would need, without starting anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry

from streamkernel.connectors.file_system import write_obstacle
from streamkernel.connectors.ports import ConnectorError, Record, Source
from streamkernel.connectors.registry.client import RegistryClient, RegistryOutage
from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.assembly.connectors import let_pass, make_sink, make_source
from streamkernel.daemon.assembly.model import try_model
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.checkpoints.lock import find_holder
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.components.caveats import caveats
from streamkernel.daemon.components.group_mode import group_of, partition_directories
from streamkernel.daemon.components.sources import own_target
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import (
    KafkaSinkConfig,
    KafkaSourceConfig,
    NoDeadLettersConfig,
    ParquetPredictionsConfig,
    SourceConfig,
)
from streamkernel.daemon.failure import sentence
from streamkernel.daemon.http.server import Server, ServerError
from streamkernel.daemon.monitoring.dead_letters import explained
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.component import OpenSource
from streamkernel.daemon.run_state.header import COMPONENTS, sources_of
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.in_flight import is_marked
from streamkernel.daemon.stream.label_watch import TOLD_AFTER, no_label
from streamkernel.daemon.trial import POLL_SECONDS, FirstRecords, take_first, try_records

__all__ = ["Findings", "check"]


@dataclass
class Findings:
    """What was tried."""

    good: list[str] = field(default_factory=list)  # what works, and what to know about it
    bad: list[str] = field(default_factory=list)  # what would make a run fail
    columns: list[str] = field(default_factory=list)  # what becomes of the columns of each source's first record
    first: dict[str, FirstRecords] = field(default_factory=dict)  # what a run would take first, by section
    n_partitions: int = 0  # of the topic of the source; 0: not known

    def add(self, attempt: Callable[[], str | None]) -> None:
        """Note what an attempt found, if anything, or why it failed."""
        try:
            found = attempt()
        except (ConnectorError, CheckpointError, ServerError, DaemonError) as error:
            self.bad.append(str(error))
        else:
            self.good += [found] if found else []


def check(plan: Plan) -> Findings:
    """Try the connections of a configuration that is valid in itself."""
    findings = Findings()
    config = plan.config
    grouped = group_of(config) is not None
    # The checkpoint says where the sources are read on.
    starts: list[Start] = []
    begun = Findings()
    for directory in _directories(plan):
        begun.add(partial(_checkpoint, plan, directory, starts))
    left = _left(plan, starts)
    for key in config.sources:
        if key in left and not left[key].first:
            findings.add(partial(_source, plan, left[key], findings))
        findings.add(partial(_registry, key, config.sources[key]))
    if grouped:
        findings.add(partial(_group, plan))
    findings.good += begun.good
    findings.bad += begun.bad
    for component in COMPONENTS:
        findings.add(partial(component.check, plan, starts))
    for one in left.values():
        if one.first:
            findings.add(partial(_source, plan, one, findings))
    findings.add(partial(_trial, plan, starts, findings))
    for key, output in config.outputs.items():
        if isinstance(output, KafkaSinkConfig):
            findings.add(partial(_topic, plan, key, output))
        path = getattr(output, "path", None)
        if path is not None and path != "-":
            folder, n_bad = isinstance(output, ParquetPredictionsConfig), len(findings.bad)
            attempts: list[Callable[[], str | None]] = [partial(_folder if folder else _file, key, path)]
            if not grouped and starts:  # in the order of a run
                attempts.insert(0 if folder else 1, partial(_existing, plan, key, starts[0]))
            for attempt in attempts:
                if len(findings.bad) == n_bad:  # one error for each place
                    findings.add(attempt)
    findings.add(partial(_metrics, plan))
    findings.good += caveats(
        plan,
        {key: make_sink(one, key, plan) for key, one in config.outputs.items()},
        findings.n_partitions,
    )
    return findings


def _left(plan: Plan, starts: Sequence[Start]) -> dict[str, OpenSource]:
    """Return the sources that a run would read, by section, with the positions where it would begin."""
    nowhere = {} if starts else plan.sources
    left = {section: OpenSource(section, source, {}, lambda: 0) for section, source in nowhere.items()}
    for start in starts:  # several in a group, one for each partition
        for one in sources_of(start, plan):
            places = one.positions if one.source.resumable else {}
            before = left[one.section].positions if one.section in left else {}
            left[one.section] = replace(one, positions={**before, **places})
    return left


def _source(plan: Plan, one: OpenSource, findings: Findings) -> str:
    """Look at the records that a run would take first; where a file has none left, at those it began with."""
    section, positions, written = one.section, one.positions, plan.config.sources[one.section]
    key = section.partition(".")[0]
    if getattr(written, "path", None) == "-":
        return f"{key}: standard input, not tried"
    # One that keeps nothing next to the checkpoint: the daemon may be at work there.
    with make_source(written, plan.config, section) as source:
        if section == "source":
            let_pass(source, plan.config)
        source.open(positions)
        first = take_first(source, key, is_topic=isinstance(written, KafkaSourceConfig))
        records = [record for record in first.records if not record.blank]
        if section == "source":
            findings.n_partitions = len(source.lag)
        if source.health_problem is not None:
            raise DaemonError(f"{key}: {source.health_problem}")
        said = f"{key}: {source.describe()}"
        if positions and not first.records:
            with contextlib.suppress(ConnectorError):  # what it began with may be gone, as a run does not mind
                source.open()
                first.take(source, key, source.poll(1, POLL_SECONDS))
                findings.columns += first.columns
            return f"{said}, no record after the checkpoint yet"
        if not first.records:
            return f"{said}, no record yet"
        findings.columns += first.columns
        faults = [(place, one.fault) for place, one in zip(first.places, first.records, strict=True) if one.fault]
        rate = plan.config.dead_letters or NoDeadLettersConfig(kind="none")
        if faults:
            place, fault = faults[0]
            why = explained(fault, section, written.kind)
            said += f"; {len(faults)} of its first {len(records)} records cannot be used; the first, at {place}: {why}"
        begins = not positions  # a resumed run has counts, too, and judges records by them
        if begins and not first.columns and records and rate.at_start == "stop" and rate.max_rate < 1:
            raise DaemonError(said)
        target = own_target(plan.config, section)
        if target is not None and first.columns and (n_records := _without_label(source, records)):
            said += f"; none of its first {n_records} records {no_label(' or '.join(names_of(target)), first.names)}"
            if begins and source.exhausted:
                raise DaemonError(said)
        findings.first[section] = first
        return f"{said}, and {one.then}" if one.then else said


def _without_label(source: Source, records: Sequence[Record]) -> int:
    """Return how many of the first records have no label; 0 where one has. Further ones are read where none has."""
    n_records = 0
    while records and all(record.y is None for record in records):
        n_records += len(records)
        records = source.poll(TOLD_AFTER - n_records, POLL_SECONDS) if n_records < TOLD_AFTER else ()
    return 0 if records else n_records


def _registry(key: str, source: SourceConfig) -> str | None:
    """Ask the schema registry of a source, which a poll does only where there is a record."""
    if not isinstance(source, KafkaSourceConfig) or source.schema_registry is None:
        return None
    try:
        return f"{key}: schema registry {RegistryClient(source.schema_registry.settings()).probe()}"
    except (RegistryOutage, ConnectorError) as error:
        raise DaemonError(f"{key}: schema registry {source.schema_registry.url}: {error}") from None


def _topic(plan: Plan, key: str, settings: KafkaSinkConfig) -> str:
    """Look at the topic of an output: to open it would shut out the daemon that writes to it."""
    sink = make_sink(settings, key, plan)
    from streamkernel.connectors.kafka.writing.sink import KafkaSink

    assert isinstance(sink, KafkaSink)
    return f"{key}: {sink.probe()}"


def _group(plan: Plan) -> str:
    from streamkernel.daemon.group.member import make_membership

    return (
        f"group: {make_membership(plan).probe()}: each partition has its own model and process. All members must "
        "reach the checkpoint directory, on a file system with locks (flock) across machines"
    )


def _directories(plan: Plan) -> list[Path | None]:
    """List where the checkpoints are, one place for each model; None where none is kept."""
    if plan.config.checkpoint is None:
        return [None]
    directory = Path(plan.config.checkpoint.directory)
    begun = {} if group_of(plan.config) is None else partition_directories(directory)
    return [*begun.values()] or [directory]


def _trial(plan: Plan, starts: Sequence[Start], findings: Findings) -> None:
    """Let a copy of the model learn the first records, which are those of one partition."""
    if any(directory is not None and is_marked(directory) for directory in _directories(plan)):
        findings.good.append("source: its next records are not tried: a process learns them now, or was killed by them")
        return
    main = findings.first.get("source")
    if main is not None and group_of(plan.config) is not None:
        partition = main.records[0].position.partition
        starts = [start for start in starts if not start.resumed or partition in start.positions]
    if starts and starts[0].models.models:
        try:
            try_records(plan, starts[0], findings.first, findings.good.append)
        except Exception as error:  # a run would end with whatever a model raises
            raise DaemonError(sentence(error)) from error


def _existing(plan: Plan, key: str, start: Start) -> None:
    """See whether a run would continue the file of an output, or leave its content alone."""
    make_sink(plan.config.outputs[key], key, plan).find_problem(start.mark_of(key, plan.raw.get(key) or {}))


def _checkpoint(plan: Plan, directory: Path | None, starts: list[Start]) -> str | None:
    # A model that no checkpoint can hold is found out now, not at the first one.
    try_model(plan)
    if directory is None:
        starts.append(resume.begin(plan))
        return None
    _require_writable(directory / "lock")
    store = CheckpointStore(directory)
    found = store.restore(lambda one: (one.number, resume.restore(plan, one)), aside=False)
    holder = find_holder(directory)
    at_work = "" if holder is None else f"; a daemon is at work there ({holder})"
    if found is None:
        starts.append(resume.begin(plan))
        return f"checkpoint: {directory}, none yet{at_work}"
    number, start = found
    starts.append(start)
    return f"checkpoint: {directory}, a run continues from number {number}, record {start.counts.consumed:,}{at_work}"


def _file(key: str, path: str) -> str:
    _require_writable(Path(path))
    return f"{key}: {Path(path)}"


def _folder(key: str, path: str) -> str:
    """Try a folder of parts by the name next to it that they have until they are whole."""
    folder = Path(os.path.realpath(path))
    for one in (folder / "part", folder.with_name(f".{folder.name}.unfinished") / "part"):
        _require_writable(one)
    return f"{key}: folder {Path(path)}"


def _require_writable(path: Path) -> None:
    """Raise a DaemonError where a file cannot be written, in the words of a run."""
    why = write_obstacle(path)
    if why is not None:
        raise DaemonError(f"{path}: cannot be written: {why}")


def _metrics(plan: Plan) -> str:
    settings = plan.config.metrics
    if settings is None:
        return "metrics: off"
    said = f"metrics: {settings.host}:{settings.port}" + (", any free port" if settings.port == 0 else "")
    try:
        Server(settings, CollectorRegistry(), Health()).close()
    except ServerError:
        if not any(directory is not None and find_holder(directory) for directory in _directories(plan)):
            raise
        said += ", not tried while a daemon is at work"
    return said
