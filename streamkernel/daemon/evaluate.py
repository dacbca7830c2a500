"""Progressive validation on a finite source: each record is predicted, then learned, and nothing is written."""

from __future__ import annotations

import contextlib
import logging
import math

from streamkernel.connectors.memory import NullSink
from streamkernel.daemon.assembly.processor import compared, feed_of, label_watch, make_processor
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.components.caveats import label_advice
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.dead_letters import DeadLetterLog
from streamkernel.daemon.monitoring.evaluation import POINT_RECORDS, CurveRecorder, Evaluation
from streamkernel.daemon.monitoring.progress import show_progress
from streamkernel.daemon.monitoring.status_page import drawn
from streamkernel.daemon.monitoring.visible import visible
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.header import sources_of
from streamkernel.daemon.stream.ending import verify_ending
from streamkernel.daemon.stream.loop import Checkpoints, Loop
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.warm_start import OpenRun, warm_up

__all__ = ["evaluate"]

_log = logging.getLogger(__name__)


class _NoCheckpoints(Checkpoints):
    """Saves nothing, but cuts the stream where the curves have their points."""

    def room(self, taken: int) -> int:
        return POINT_RECORDS - taken % POINT_RECORDS


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
    for key, what in (("follow", "followed"), ("watch", "watched")):
        of = [section for section, one in plan.config.sources.items() if getattr(one, key, False)]
        if of:
            ending = " ".join(f"--set {section}.{key}=false" for section in of)
            raise DaemonError(f"{plan.path}: evaluate needs a source that ends, this one is {what}: add {ending}")
    if any(written.kind == "kafka" for written in plan.config.sources.values()):
        raise DaemonError(f"{plan.path}: evaluate needs a source that ends, a topic of Kafka does not")
    start = resume.begin(plan)
    resume.load(plan, start, {})  # nothing is written
    processor = make_processor(plan, start)
    sinks = Sinks({"predictions": NullSink(), "dead_letters": NullSink()})
    with contextlib.ExitStack() as stack:
        for one in sources_of(start, plan):
            if not one.first:  # the warm start opens that
                stack.enter_context(one.source).open()
            if plan.config.sources[one.section].kind == "river" and one.source.total is None:
                raise DaemonError(f"{plan.path}: evaluate needs a source that ends, {one.source.describe()} does not")
        dead_letters = DeadLetterLog(
            {key: section.kind for key, section in plan.config.sources.items()},
            refused=label_advice(plan),
            sources=plan.sources,
        )
        if (
            any(one.first for one in sources_of(start, plan))
            and warm_up(OpenRun(plan, start, processor, sinks, stopped, dead_letters))[0] == "stopped"
        ):
            raise DaemonError(f"{plan.path}: stopped during the warm start: there is nothing to evaluate")
        total = plan.source.total
        with show_progress(plan.path.stem, total[0] if total is not None else None) as show:
            recorder = CurveRecorder(processor, None, show=show, dead_letters=dead_letters)
            feed = label_watch(plan, compared(plan, feed_of(plan, start), processor, start))
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
                dead_letters.summarize()
            if why == "exhausted":
                verify_ending(processor)
                feed.verify(processor.counts)
            evaluation = recorder.finish()
    if why == "stopped":
        for each in (evaluation, *evaluation.others.values()):
            each.stopped = stopped.name
    _describe(evaluation, plan, processor)
    if not evaluation.records or all(math.isnan(loss) for loss in evaluation.loss):
        _log.warning("%s: no record had a label: there is nothing to evaluate", plan.path)
    return evaluation


def _describe(evaluation: Evaluation, plan: Plan, processor: Processor) -> None:
    """Write into an evaluation, and into those of challengers, what was evaluated: without secrets, fit to be shown."""
    about = {
        "configuration": str(plan.path),
        **{section.removesuffix(".source"): source.describe() for section, source in plan.sources.items()},
        "task": plan.task.replace("_", " "),
        "mode": plan.config.mode,
        "window": f"{processor.quality.window:,} records",
    }
    shown = {key: visible(plan.redact(text)) for key, text in about.items()}
    evaluation.about = shown
    evaluation.pipeline = drawn(processor.learner.model, plan.redact)
    for name, other in evaluation.others.items():
        reason = evaluation.view.models[name].disabled
        other.about = {**shown, **({"disabled": visible(plan.redact(reason))} if reason else {})}
        other.pipeline = "" if reason else drawn(plan.models[name], plan.redact)
