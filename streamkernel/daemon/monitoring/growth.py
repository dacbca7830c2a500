"""How far a model has grown, where it is one that does, and how often one that adapts has changed."""

from __future__ import annotations

import math

from streamkernel.daemon.base.model import Model, count_of, last_step
from streamkernel.daemon.base.window_refit import window_refit_of

__all__ = ["changes_of", "check_margin_of", "grows", "growth_of"]

_GROWTH = {"features": "n_features", "blocks": "n_blocks", "grown": "n_grown", "reused": "n_reused"}
_CHANGES = {"drifts": "n_drifts_detected", "metric_relearnings": "n_metric_relearnings"}


def grows(model: Model) -> bool:
    """Return whether a model, or the last step of a pipeline, is a kernel machine that grows."""
    step = last_step(model)
    return all(hasattr(step, attribute) for attribute in _GROWTH.values())


def growth_of(model: Model) -> dict[str, int]:
    """Read how far a model has grown, and how often it was refitted; empty for models that do not grow."""
    if not grows(model):
        return {}
    step = last_step(model)
    attributes = _GROWTH if window_refit_of(model) is None else {**_GROWTH, "refits": "n_refits", "window": "n_window"}
    return {name: int(getattr(step, attribute)) for name, attribute in attributes.items()}


def check_margin_of(model: Model) -> float:
    """Return by how much inequality (9) held when CDSG last reused a block; NaN before, and for any other model."""
    return float(getattr(last_step(model), "last_check_margin", math.nan))


def changes_of(model: Model) -> dict[str, int]:
    """Return how many drifts a model detected, and how often it learned its metric; empty for models that do not."""
    counts = {name: count_of(last_step(model), one) for name, one in _CHANGES.items()}
    return {name: count for name, count in counts.items() if count is not None}
