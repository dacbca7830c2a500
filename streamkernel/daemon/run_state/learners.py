"""What a configuration makes of models and dead letters: learners, scores, and rates."""

from __future__ import annotations

from collections.abc import Iterable

from streamkernel.daemon.base.model import OF_EACH, Model, learning_part
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import MetricsConfig, NoDeadLettersConfig
from streamkernel.daemon.run_state.run_models import RestoredModel
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.direct import DirectStage, KeylessStage, UnlabeledStage
from streamkernel.daemon.stream.input_names import InputNames
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.processor import Scores
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality, SeveralQuality
from streamkernel.daemon.stream.river_learner import learner_for
from streamkernel.estimators.base import StreamEstimator, machine_of

__all__ = ["direct_stage", "make_learner", "make_rate", "make_scores"]


def make_learner(plan: Plan, restored: RestoredModel) -> Learner:
    """Return the learner of a model."""
    model = restored.model
    part = learning_part(model)
    if isinstance(part, StreamEstimator):
        machine_of(part).inputs.repeats.types_key = "source.inputs.types"
    # Where a step of ours has a limit of its own, that of the steps before it is no lower.
    max_inputs = max(plan.config.limits.max_inputs, getattr(part, "max_inputs", 0))
    return learner_for(model, restored.learns, InputNames(max_inputs, restored.inputs), restored.target_moments)


def make_scores(plan: Plan, model: Model) -> Scores:
    """Return the report metrics and the loss of a model."""
    shown = plan.config.metrics or MetricsConfig()
    if plan.task in OF_EACH:
        return Scores(SeveralQuality(OF_EACH[plan.task], plan.report, shown.window), ProgressiveLoss(shown.window))
    max_classes = min(shown.max_classes, getattr(learning_part(model), "max_classes", shown.max_classes))
    return Scores(Quality(plan.task, plan.report, shown.window, max_classes), ProgressiveLoss(shown.window))


def make_rate(plan: Plan, recent: Iterable[int]) -> DeadLetterRate:
    """Return the watch over the share of dead letters, which continues after recent ones."""
    bad = plan.config.dead_letters or NoDeadLettersConfig(kind="none")
    return DeadLetterRate(bad.max_rate, bad.max_rate_window, recent, bad.at_start == "stop")


def direct_stage(plan: Plan, key: str | None = None) -> DirectStage:
    """Return the stage of records that come with their labels, or need none; a key of theirs is no input."""
    if key is not None:
        return KeylessStage(key)
    return UnlabeledStage() if plan.task == "novelty" else DirectStage()
