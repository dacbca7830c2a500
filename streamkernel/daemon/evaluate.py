"""Progressive validation on a finite source: each record is predicted, then learnt, and nothing is written."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Mapping
from typing import Any

from connectors.memory import NullSink
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.promises import label_advice
from streamkernel.daemon.monitoring.dead_letter_log import DeadLetterLog
from streamkernel.daemon.monitoring.evaluation import Evaluation
from streamkernel.daemon.monitoring.growth import growth_of
from streamkernel.daemon.monitoring.progress import show_progress
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.recovery import resume
from streamkernel.daemon.stream.chunk_result import ChunkResult
from streamkernel.daemon.stream.ending import verify_ending
from streamkernel.daemon.stream.loop import Checkpoints, Loop
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.warming import WarmRun, warm_up
from streamkernel.daemon.wiring.processor import feed_of, make_processor

__all__ = ["evaluate"]

_log = logging.getLogger(__name__)

# The curves have a point after each so many records, on a slow machine and on a fast one.
_POINT_RECORDS = 50


class _NoCheckpoints(Checkpoints):
    """Saves nothing, but cuts the stream where the curves have their points."""

    def room(self, taken: int) -> int:
        return _POINT_RECORDS - taken % _POINT_RECORDS


class _Recorder(Watch):
    """Notes the curves beside what the watch does."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.evaluation = Evaluation(self.view)

    def chunk(self, done: ChunkResult) -> None:
        super().chunk(done)
        if self._processor.taken % _POINT_RECORDS == 0:
            self.point()

    def point(self) -> None:
        curves = self.evaluation
        if curves.records and curves.records[-1] == self._processor.counts.consumed:
            # Labels that come after the last record move the end of the curve.
            curves.drop_last()
        processor = self._processor
        consumed = processor.counts.consumed
        curves.add(consumed, processor.loss.mean(), growth_of(processor.learner.model))
        for name, scores in processor.others.items():
            other = curves.others.setdefault(name, Evaluation(self.view))
            other.add(consumed, scores.loss.mean(), self._growth_of(name))

    def finish(self) -> Evaluation:
        """Return what was noted, with the last view."""
        self.point()
        self.evaluation.finish(self.refresh())
        return self.evaluation

    def _growth_of(self, name: str) -> Mapping[str, int]:
        challengers = self._processor.challengers
        learner = None if challengers is None else challengers.learners.get(name)
        return {} if learner is None else growth_of(learner.model)


def evaluate(plan: Plan, stopped: StopSignals) -> Evaluation:
    """Evaluate one configuration, in mode predict its trained model; outputs, checkpoints and metrics stay untouched.

    Parameters
    ----------
    plan
        The configuration.
    stopped
        Whether to stop early.

    Raises
    ------
    DaemonError
        Where the source never ends, or has too many records that cannot be used.
    ConnectorError
        Where the source fails.
    CheckpointError
        Where there is no trained model in mode predict, or no initial one where one is asked for.

    """
    sources = [(plan.config.source, plan.source)]
    if plan.config.labels is not None and plan.labels is not None:
        sources.append((plan.config.labels.source, plan.labels))
    if any(getattr(written, "follow", False) for written, _ in sources):
        raise DaemonError(f"{plan.path}: evaluate needs a source that ends, this one is followed")
    if any(getattr(written, "watch", False) for written, _ in sources):
        raise DaemonError(f"{plan.path}: evaluate needs a source that ends, this one is watched: drop watch")
    if any(written.kind == "kafka" for written, _ in sources):
        raise DaemonError(f"{plan.path}: evaluate needs a source that ends, a topic of Kafka does not")
    start = resume.restore(plan, None)
    if plan.config.mode == "predict":
        resume.take_trained(plan, start)
    processor = make_processor(plan, start)
    sinks = Sinks({"predictions": NullSink(), "dead_letters": NullSink()})
    with contextlib.ExitStack() as stack:
        for written, source in sources:
            stack.enter_context(source).open()
            if written.kind == "river" and source.total is None:
                raise DaemonError(f"{plan.path}: evaluate needs a source that ends, {source.describe()} does not")
        dead_letters = DeadLetterLog(
            {key: section.kind for key, section in plan.config.sources.items()}, refused=label_advice(plan)
        )
        if (
            start.warm is not None
            and warm_up(WarmRun(plan, start, processor, sinks, stopped, dead_letters))[0] == "stopped"
        ):
            raise DaemonError(f"{plan.path}: stopped in the midst of the warm start, there is nothing to judge")
        total = plan.source.total
        with show_progress(plan.path.stem, total[0] if total is not None else None) as show:
            recorder = _Recorder(processor, None, show=show, dead_letters=dead_letters)
            feed = feed_of(plan, start)
            try:
                loop = Loop(
                    feed,
                    processor,
                    sinks,
                    start.positions,
                    recorder,
                    _NoCheckpoints(),
                    stopped=stopped,
                    times=recorder.times,
                )
                why = loop.run()
            finally:
                dead_letters.summarise()
            if why == "exhausted":
                verify_ending(processor)
            evaluation = recorder.finish()
    if not evaluation.records or all(math.isnan(loss) for loss in evaluation.loss):
        _log.warning("%s: no record had a label, there is nothing to judge", plan.path)
    return evaluation
