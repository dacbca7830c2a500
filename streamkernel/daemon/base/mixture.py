"""Readings of an estimator that mixes experts: the weight of each expert, and which inputs matter most."""

from __future__ import annotations

import heapq

from streamkernel.daemon.base.model import Model, last_step

__all__ = ["MOST_INPUTS", "experts_of", "important_inputs", "mixes"]

#: A stream may bring a thousand inputs, and each would be a time series.
MOST_INPUTS = 20


def mixes(model: Model) -> bool:
    """Return whether a model, or the last step of a pipeline, mixes experts."""
    return hasattr(last_step(model), "expert_weights")


def experts_of(model: Model) -> dict[str, float]:
    """Return the weight of each expert, by name; empty for other models and before the first labelled record."""
    return dict(last_step(model).expert_weights) if mixes(model) else {}  # type: ignore[attr-defined]


def important_inputs(model: Model, most: int = MOST_INPUTS) -> dict[str, float]:
    """Return the shares of the most important inputs by name, the largest first.

    It is empty for models without experts, or that do not weigh their inputs, and before they do.
    """
    shares = getattr(last_step(model), "feature_importances_", {}) if mixes(model) else {}
    return dict(heapq.nlargest(most, shares.items(), key=lambda item: item[1]))
