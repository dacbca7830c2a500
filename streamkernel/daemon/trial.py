"""The records that a run would take first, and a trial of them: a copy of its model learns them, and is dropped."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamkernel.connectors.columns.uses import empty_inputs
from streamkernel.connectors.memory import MemorySource, NullSink
from streamkernel.connectors.ports import ColumnUse, Fault, Record, Source
from streamkernel.daemon.assembly.processor import compared, feed_of, make_processor
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.base.model import has_own_parts, is_ours
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.dead_letters import explained, remedy
from streamkernel.daemon.monitoring.visible import visible
from streamkernel.daemon.run_state.header import sources_of
from streamkernel.daemon.run_state.learners import make_learner
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.ending import TooManyDeadLettersError, verify_ending
from streamkernel.daemon.stream.known_inputs import ENOUGH
from streamkernel.daemon.stream.learner import AdvancingLearner, Inputs, Learner
from streamkernel.daemon.stream.loop import Checkpoints, Feed, Loop, Observer
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.estimators.base import AdvanceResult, machine_of

__all__ = ["POLL_SECONDS", "FirstRecords", "column_lines", "take_first", "try_records"]

POLL_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0
_MOST_COLUMNS = 100
_WIDEST = 40
# A model that takes seconds for each record is tried with a few of them.
_MOST_SECONDS = 5.0


@dataclass
class FirstRecords:
    """The records of a source that a run would take first.

    Attributes
    ----------
    records
        The records, blank ones too.
    places
        Where each of the records is, in words.
    empty
        The columns that are inputs and have no value in one of them.
    columns
        What becomes of the columns of the first one that can be used, in lines; empty where none can.
    names
        The names of these columns.
    whole
        Whether the source ends after them.

    """

    records: list[Record] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)
    columns: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    whole: bool = False

    def take(self, source: Source, key: str, polled: Sequence[Record]) -> None:
        """Add what a poll returned, before the source reads on: the next file may have other columns."""
        for record in polled:
            if record.fault is None and not record.blank:
                self.empty.update(empty_inputs(source, record))
                if not self.columns:
                    usable = "" if all(one.blank for one in self.records) else " that can be used"
                    uses = source.columns(record)
                    self.names = [use.name for use in uses]
                    self.columns = [f"columns of {key}, by its first record{usable}:", *column_lines(uses)]
            self.records.append(record)
            self.places.append(source.place(record.position.partition, record.position.offset))


def take_first(source: Source, key: str, *, is_topic: bool) -> FirstRecords:
    """Poll until records come or, of a topic, its end is known: a slow broker's topic only seems to be empty.

    Parameters
    ----------
    source
        The source, open.
    key
        Its section of the configuration.
    is_topic
        Whether it is a topic of Kafka.

    """
    first = FirstRecords()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    first.take(source, key, source.poll(1, POLL_SECONDS))
    while is_topic and not first.records and source.health_problem is None and time.monotonic() < deadline:
        if source.lag and not any(source.lag.values()):
            break
        first.take(source, key, source.poll(1, POLL_SECONDS))
    while 0 < len(first.records) < ENOUGH and (more := source.poll(1, 0)):  # one: of two, the source knows one's file
        first.take(source, key, more)
    first.whole = source.exhausted
    return first


def column_lines(uses: Sequence[ColumnUse]) -> list[str]:
    """Return a line for each column of a record: name, value, type and use, one below the other.

    Examples
    --------
    >>> column_lines([ColumnUse("id", "'A-7'", "string", "excluded"), ColumnUse("amount", "7.5", "number", "input")])
    ["  id      'A-7'  string  excluded", '  amount  7.5    number  input']

    """
    shown = [_visible(use) for use in uses[:_MOST_COLUMNS]]
    name, value, kind = (
        min(max(map(len, cells), default=0), _WIDEST)
        for cells in ([use.name for use in shown], [use.value for use in shown], [use.type for use in shown])
    )
    lines = [f"  {use.name:{name}}  {use.value:{value}}  {use.type:{kind}}  {use.use}" for use in shown]
    return lines + ([f"  and {len(uses) - _MOST_COLUMNS} more"] if len(uses) > _MOST_COLUMNS else [])


def _visible(use: ColumnUse) -> ColumnUse:
    """Return what a terminal shows, with which columns are aligned; a name that is empty is quoted."""
    return use._replace(name=visible(use.name) or "''", value=visible(use.value), use=visible(use.use))


def try_records(plan: Plan, start: Start, first: Mapping[str, FirstRecords], tell: Callable[[str], None]) -> None:
    """Predict and learn the first records of a run with a copy of its model.

    Parameters
    ----------
    plan
        The configuration.
    start
        Where the run would begin; it stays as it is.
    first
        The first records of each source, by its section; those of a warm start only where it is not learned yet.
    tell
        Called with each sentence about what a run bears.

    Raises
    ------
    DaemonError
        With the sentence that the run would end with.

    """
    start = copy.deepcopy(replace(start, newer=lambda: None))
    processor = make_processor(plan, start, lambda plan, one: _quick(make_learner(plan, one)))

    def compare(feed: Feed, records: FirstRecords, **place: str) -> Feed:
        return compared(plan, feed, processor, start, tell=tell, empty=lambda _: records.empty, **place)

    left = [one for one in sources_of(start, plan) if one.section in first]
    for one in left:
        if one.first is not None:
            records = first[one.section]
            feed = compare(MemorySource(records.records), records, place=one.section)
            _learn(plan, feed, one.first(processor), [records], tell)
    main = first.get("source")
    if main is None:
        return
    tried = {one.section: first[one.section] for one in left if one.first is None}
    sources = {section: MemorySource(records.records) for section, records in tried.items()}
    feed = feed_of(replace(plan, sources=sources), start)
    if all(first[one.section].whole for one in left if one.first is not None):
        feed = compare(feed, main)  # else the copy has not learned all the inputs that the model will know
    _learn(plan, feed, processor, [*tried.values()], tell)


class _Admission(AdvancingLearner):
    """Looks at records as our estimators do before they compute anything, which may have to be compiled first."""

    def _advance(
        self,
        batch: RecordBatch,
        xs: Inputs,
        stopped: Callable[[], bool],  # noqa: ARG002 - it takes microseconds
        catch: bool,  # noqa: ARG002 - nothing else is raised
    ) -> None:
        machine, labels = machine_of(self.model), self.task == "classification"
        n_done = 0
        for x, y in zip(xs, batch.targets, strict=True):
            try:
                for _, targets, _ in machine._encoder.take([x], [y if self.learn else None], None):
                    if labels:
                        machine.targets.admit(targets)
            except ValueError as error:
                batch.refused[n_done] = Fault("refused", str(error))
            n_done += 1
            if batch.refused and batch.until_refused:
                break
        nothing: Any = None if labels else 0.0
        given: list[dict[Any, float]] | None = [{} for _ in range(n_done)] if labels else None
        batch.result = AdvanceResult([nothing] * n_done, given, np.full(n_done, math.nan))


def _quick(learner: Learner) -> Learner:
    """Return a learner that computes nothing where our own code alone would: that fails at no record it admits."""
    ours = is_ours(learner.model) and not has_own_parts(learner.model)
    return _Admission(learner.model, learner.learn) if ours else learner


class _Letters(Observer):
    """Keeps the dead letters."""

    def __init__(self) -> None:
        self.kept: list[tuple[dict[str, Any], Fault]] = []

    def chunk(self, done: RecordBatch) -> None:
        self.kept += zip(done.letters, done.faults, strict=True)

    def turn(self) -> None:
        pass


def _learn(
    plan: Plan, feed: Feed, processor: Processor, first: Sequence[FirstRecords], tell: Callable[[str], None]
) -> None:
    """Take the records through the loop of a run, and judge what became of them as a run would."""
    before = copy.copy(processor.counts)
    letters = _Letters()
    deadline = time.monotonic() + _MOST_SECONDS
    failure: TooManyDeadLettersError | None = None
    try:
        Loop(
            feed,
            processor,
            Sinks({"predictions": NullSink(), "dead_letters": NullSink()}),
            {},
            letters,
            Checkpoints(),
            stopped=lambda: time.monotonic() > deadline,
        ).run()
        if all(one.whole for one in first):
            verify_ending(processor)
    except TooManyDeadLettersError as error:
        failure = error
    faults = {record.fault.reason for one in first for record in one.records if record.fault is not None}
    refused = [(letter, fault) for letter, fault in letters.kept if fault.reason not in faults]
    if not refused:
        if failure is not None:
            raise failure
        return
    counts, (begun, fault) = processor.counts, refused[0]
    n_taken = counts.consumed - before.consumed
    late = "source" in begun["position"]
    section = f"{begun['position']['source']}.source" if late else "source"
    place = first[-1 if late else 0].places[begun["position"]["offset"]]
    kind = plan.config.sources[section].kind
    why, advice = explained(fault, section, kind), remedy(fault, section, kind)
    if failure is not None:  # what a run says before it ends with this sentence
        known = f": {advice}" if advice else ""
        raise DaemonError(f"{failure}{known if failure.has_example else f'; the first, at {place}: {why}'}")
    if counts.predicted == before.predicted == 0 and processor.rate.stops_at_start:
        raise DaemonError(f"{section}: none of the first {n_taken} records can be used; the first, at {place}: {why}")
    tell(f"{section}: {len(refused)} of the first {n_taken} records cannot be used; the first, at {place}: {why}")
