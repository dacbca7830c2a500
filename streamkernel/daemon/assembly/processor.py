"""Constructs the processor of a run, its learner and the feed of its loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamkernel.connectors.columns.uses import empty_inputs
from streamkernel.connectors.ports import Source
from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.base.model import OF_EACH, Model, learning_part
from streamkernel.daemon.config.outputs import PassingColumnsConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import DeadLettersConfig, MetricsConfig, NoDeadLettersConfig
from streamkernel.daemon.config.sources import SourceConfig
from streamkernel.daemon.labels.merged_sources import MergedSources
from streamkernel.daemon.labels.stage import JoinStage
from streamkernel.daemon.run_state.run_models import RestoredModel, RunModels
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.run_state.warm_start import WarmStart
from streamkernel.daemon.stream.calibration import make_calibration
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.direct import DirectStage, KeylessStage, UnlabeledStage
from streamkernel.daemon.stream.input_names import InputNames
from streamkernel.daemon.stream.known_inputs import ComparedFeed, KnownInputs
from streamkernel.daemon.stream.label_watch import LabelWatch
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.loop import Feed
from streamkernel.daemon.stream.processor import WARM_START, Processor, Scores, Stage
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality, SeveralQuality
from streamkernel.daemon.stream.river_learner import learner_for
from streamkernel.estimators.base import StreamEstimator, machine_of

__all__ = ["compared", "feed_of", "label_watch", "make_learner", "make_processor", "make_warm_processor"]


def make_processor(plan: Plan, start: Start) -> Processor:
    """Return the processor of a run: the model, its counts and scores, and the stage that makes events of records."""
    bad = plan.config.dead_letters or NoDeadLettersConfig(kind="none")
    scores = _make_scores(plan, start.models.main.model)
    learner = make_learner(plan, start.models.main)
    challengers = _make_challengers(plan, start.models, bad)
    stage: Stage = _direct_stage(plan)
    if start.trained is not None and start.trained.label_key is not None:
        stage = KeylessStage(start.trained.label_key)
    if start.join is not None:
        stage = JoinStage(start.join, learner, _make_rate(bad, start.join.recent_dead), challengers)
    return Processor(
        learner,
        scores.quality,
        scores.loss,
        _make_rate(bad, start.recent_dead),
        start.counts,
        stage,
        None if start.trained is None else start.trained.checkpoint,
        _encoding_of(plan.config.source),
        _published(plan, start),
        challengers,
        _scores_of_challengers(plan, challengers),
        isinstance(plan.config.predictions, PassingColumnsConfig) and plan.config.predictions.models == "all",
        make_calibration(plan.task, (plan.config.metrics or MetricsConfig()).window),
    )


def make_warm_processor(plan: Plan, main: Processor, warm: WarmStart) -> Processor:
    """Return the processor of a warm start, with the learners of the main one and counts and scores of its own."""
    assert plan.config.warm_start is not None
    bad = plan.config.dead_letters or NoDeadLettersConfig(kind="none")
    scores = _make_scores(plan, main.learner.model)
    return Processor(
        main.learner,
        scores.quality,
        scores.loss,
        _make_rate(bad, warm.recent_dead),
        warm.counts,
        _direct_stage(plan) if plan.config.labels is None else KeylessStage(plan.config.labels.key),
        encoding=_encoding_of(plan.config.warm_start.source),
        name=main.name,
        challengers=main.challengers,
        others=_scores_of_challengers(plan, main.challengers),
        source=WARM_START,
    )


def _make_rate(bad: DeadLettersConfig, recent: Iterable[int]) -> DeadLetterRate:
    return DeadLetterRate(bad.max_rate, bad.max_rate_window, recent, bad.at_start == "stop")


def _encoding_of(source: SourceConfig) -> str:
    """Return the encoding in which the dead letters of a source can be read."""
    return getattr(source, "encoding", "utf-8")


def _direct_stage(plan: Plan) -> DirectStage:
    return UnlabeledStage() if plan.task == "novelty" else DirectStage()


def _published(plan: Plan, start: Start) -> str:
    """Return the name of the model that is published, where the configuration has names."""
    of_trained = start.trained.name if start.trained is not None else ""
    of_plan = plan.published if plan.models else ""
    return start.models.published or (of_trained if plan.models else "") or of_plan


def _make_challengers(plan: Plan, models: RunModels, rate: DeadLettersConfig) -> Challengers:
    """Return the models next to the published one."""
    learners = {name: make_learner(plan, one) for name, one in models.models.items() if name != models.published}
    return Challengers(models.published, models.statuses, learners, rate.max_rate, rate.max_rate_window)


def _scores_of_challengers(plan: Plan, challengers: Challengers) -> dict[str, Scores]:
    return {name: _make_scores(plan, one.model) for name, one in challengers.learners.items()}


def _make_scores(plan: Plan, model: Model) -> Scores:
    """Return the report metrics and the loss of a model."""
    shown = plan.config.metrics or MetricsConfig()
    if plan.task in OF_EACH:
        return Scores(SeveralQuality(OF_EACH[plan.task], plan.report, shown.window), ProgressiveLoss(shown.window))
    max_classes = min(shown.max_classes, getattr(learning_part(model), "max_classes", shown.max_classes))
    return Scores(Quality(plan.task, plan.report, shown.window, max_classes), ProgressiveLoss(shown.window))


def make_learner(plan: Plan, restored: RestoredModel) -> Learner:
    """Return the learner of a model."""
    model = restored.model
    part = learning_part(model)
    if isinstance(part, StreamEstimator):
        machine_of(part).inputs.repeats.types_key = "source.inputs.types"
    # Where a step of ours has a limit of its own, that of the steps before it is no lower.
    max_inputs = max(plan.config.limits.max_inputs, getattr(part, "max_inputs", 0))
    return learner_for(
        model, plan.config.mode == "learn", InputNames(max_inputs, restored.inputs), restored.target_moments
    )


def feed_of(plan: Plan, start: Start) -> Feed:
    """Return what the loop reads: the open source, or it and that of the labels in turn."""
    if plan.labels is None or start.join is None:
        return plan.source
    return MergedSources(plan.source, plan.labels, start.join.label_next)


def compared(plan: Plan, feed: Feed, processor: Processor, start: Start | None = None, **words: Any) -> Feed:
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
        The state of the run: the key of late labels that its model was trained with is no input.
    words
        The place, the advice, the listener and the empty columns of `ComparedFeed`.

    """
    learner, late = processor.learner, plan.config.labels
    known = KnownInputs.of(learner.model, learner.input_names)
    if known is None:
        return feed
    ignored = (start.trained.label_key if start and start.trained else None, None if late is None else late.key)
    source = feed if isinstance(feed, Source) else plan.source
    words.setdefault("empty", lambda record: empty_inputs(source, record))
    return ComparedFeed(feed, known, plan.config.limits.min_known_inputs, ignored, **words)


def label_watch(plan: Plan, feed: Feed, section: str = "source") -> LabelWatch:
    """Return a feed that looks whether the records of a source have labels, where they should bring their own."""
    source = plan.warm if section != "source" else plan.source
    assert source is not None
    target = getattr(plan.config.sources[section], "target", None)
    late = section == "source" and plan.config.labels is not None
    unlabeled = late or plan.config.mode == "predict" or plan.task == "novelty"
    return LabelWatch(feed, None if unlabeled else " or ".join(names_of(target)) or None, source.columns, section)
