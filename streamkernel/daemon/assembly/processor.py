"""Constructs the processor of a run, and the feed of its loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamkernel.connectors.columns.uses import empty_inputs
from streamkernel.connectors.ports import Source
from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.components.sources import own_target
from streamkernel.daemon.config.outputs import PassingColumnsConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.run_state.header import COMPONENTS
from streamkernel.daemon.run_state.learners import direct_stage, make_learner, make_rate, make_scores
from streamkernel.daemon.run_state.run_models import RestoredModel
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.calibration import make_calibration
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.known_inputs import ComparedFeed, KnownInputs
from streamkernel.daemon.stream.label_watch import LabelWatch
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.loop import Feed
from streamkernel.daemon.stream.processor import Processor

__all__ = ["compared", "feed_of", "label_watch", "make_processor"]


def make_processor(
    plan: Plan, start: Start, make: Callable[[Plan, RestoredModel], Learner] = make_learner
) -> Processor:
    """Return the processor of a run: its models, counts and scores, and the stage that makes rows of records."""
    models, metrics = start.models, plan.config.metrics or MetricsConfig()
    learner, rate = make(plan, models.main), make_rate(plan, start.recent_dead)
    scores = make_scores(plan, models.main.model)
    others = {name: make(plan, one) for name, one in models.models.items() if name != models.published}
    challengers = Challengers(models.published, models.statuses, others, rate.max_rate, rate.window)
    stages = (component.stage(start, plan, learner, challengers) for component in COMPONENTS)
    return Processor(
        learner,
        scores.quality,
        scores.loss,
        rate,
        start.counts,
        next((stage for stage in stages if stage is not None), direct_stage(plan)),
        models.checkpoint,
        getattr(plan.config.source, "encoding", "utf-8"),
        models.name,
        challengers,
        {name: make_scores(plan, one.model) for name, one in others.items()},
        isinstance(plan.config.predictions, PassingColumnsConfig) and plan.config.predictions.models == "all",
        make_calibration(plan.task, metrics.window),
    )


def feed_of(plan: Plan, start: Start) -> Feed:
    """Return what the loop reads: the open source, or more of them in turn."""
    feeds = (component.feed(start, plan) for component in COMPONENTS)
    return next((feed for feed in feeds if feed is not None), plan.source)


def compared(plan: Plan, feed: Feed, processor: Processor, start: Start, **words: Any) -> Feed:
    """Return a feed whose first records are compared with the inputs that the model has learned by now.

    Parameters
    ----------
    plan
        The configuration.
    feed
        The open source, or what merges two.
    processor
        Has the model.
    start
        The state of the run, which knows the fields of a record that are no inputs.
    words
        The place, the advice, the listener and the empty columns of `ComparedFeed`.

    """
    known = KnownInputs.of(processor.learner.model, processor.learner.input_names)
    if known is None:
        return feed
    excluded = [name for component in COMPONENTS for name in component.excluded(start)]
    source = feed if isinstance(feed, Source) else plan.source
    words.setdefault("empty", lambda record: empty_inputs(source, record))
    return ComparedFeed(feed, known, plan.config.limits.min_known_inputs, excluded, **words)


def label_watch(plan: Plan, feed: Feed, section: str = "source") -> LabelWatch:
    """Return a feed that looks whether the records of a source have labels, where they should bring their own."""
    target = None if plan.task == "novelty" else own_target(plan.config, section)
    return LabelWatch(feed, " or ".join(names_of(target)) or None, plan.sources[section].columns, section)
