"""Several models side by side: the figures of each at one moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from streamkernel.daemon.monitoring.growth import growth_of
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.processor import Processor, Scores

__all__ = ["ModelView", "views_of_models"]


@dataclass(frozen=True)
class ModelView:
    """The figures of one of several models; losses and counts are those of this process."""

    published: bool = False
    disabled: str = ""  # why; empty where it is not
    shown: int = 0  # events it was given since it began
    shown_here: int = 0  # of these, those of this process
    refused: int = 0
    not_finite: int = 0
    seconds: float = 0.0  # at work on it
    loss: float = math.nan  # the progressive loss
    loss_sum: float = 0.0
    losses: int = 0  # that went into the sum
    losses_not_finite: int = 0
    overall: Mapping[str, float] = field(default_factory=dict)
    baseline: Mapping[str, float] = field(default_factory=dict)
    rolling: Mapping[str, float] = field(default_factory=dict)
    growth: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)

    @property
    def state(self) -> str:
        """Published, a challenger, or disabled."""
        return "disabled" if self.disabled else "published" if self.published else "challenger"


def views_of_models(processor: Processor) -> dict[str, ModelView]:
    """Return the figures of each of several models by its name; none where there is one without."""
    challengers = processor.challengers
    views = {}
    for name, status in challengers.statuses.items():
        published = name == challengers.published
        scores = Scores(processor.quality, processor.loss) if published else processor.others.get(name)
        learner = processor.learner if published else challengers.learners.get(name)
        view = ModelView(
            published=published,
            disabled=status.disabled,
            shown=status.shown,
            shown_here=status.shown_here,
            refused=status.refused,
            not_finite=status.not_finite,
            seconds=status.seconds,
        )
        views[name] = view if scores is None else _with_scores(view, scores, learner)
    return views


def _with_scores(view: ModelView, scores: Scores, learner: Learner | None) -> ModelView:
    return replace(
        view,
        loss=scores.loss.mean(),
        loss_sum=scores.loss.sum,
        losses=scores.loss.count,
        losses_not_finite=scores.loss.n_not_finite,
        overall=scores.quality.overall(),
        baseline=scores.quality.baseline(),
        rolling=scores.quality.rolling(),
        growth={} if learner is None else growth_of(learner.model),
    )
