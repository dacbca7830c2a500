"""From a configuration and where a run begins to what moves its records: feed, model and books."""

from __future__ import annotations

from streamkernel.daemon.base.model import last_step
from streamkernel.daemon.late.alternation import Alternation
from streamkernel.daemon.recovery import resume
from streamkernel.daemon.settings.config import MetricsConfig, NoDeadLettersConfig
from streamkernel.daemon.settings.plan import Plan
from streamkernel.daemon.stream.chunks import ChunkProcessor
from streamkernel.daemon.stream.dead_letters import DeadLetterRate
from streamkernel.daemon.stream.late_chunks import LateProcessor
from streamkernel.daemon.stream.learner import learner_for
from streamkernel.daemon.stream.loop import Feed
from streamkernel.daemon.stream.names import Names
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality

__all__ = ["feed_of", "make_processor"]


def make_processor(plan: Plan, start: resume.Start) -> ChunkProcessor:
    """Set a model and its books up as a configuration says."""
    bad = plan.config.dead_letters or NoDeadLettersConfig(kind="none")
    shown = plan.config.metrics or MetricsConfig()
    max_classes = min(shown.max_classes, getattr(last_step(start.model), "max_classes", shown.max_classes))
    books = (
        learner_for(start.model, learn=plan.config.mode == "learn", names=_names(plan, start)),
        Quality(plan.task, plan.report, shown.window, max_classes),
        ProgressiveLoss(shown.window),
        DeadLetterRate(bad.max_rate, bad.max_rate_window, start.recent_dead),
        start.account,
    )
    if start.late is None:
        return ChunkProcessor(*books)
    return LateProcessor(*books, start.late, DeadLetterRate(bad.max_rate, bad.max_rate_window, start.late.recent_dead))


def _names(plan: Plan, start: resume.Start) -> Names:
    # Where a step of ours has a limit of its own, that of the steps before it is no lower.
    most = max(plan.config.limits.max_inputs, getattr(last_step(start.model), "max_inputs", 0))
    return Names(most, start.inputs)


def feed_of(plan: Plan, start: resume.Start) -> Feed:
    """Return what the loop reads: the open source, or it and that of the labels in turn."""
    if plan.labels is None or start.late is None:
        return plan.source
    return Alternation(plan.source, plan.labels, start.late.label_next)
