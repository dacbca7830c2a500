"""Readings of an estimator that mixes experts: the weight of each expert, and which inputs matter most."""

from __future__ import annotations

import heapq
import time
from typing import NamedTuple
from weakref import WeakKeyDictionary

from river import base

from streamkernel.daemon.base.model import Model, last_step

__all__ = ["MOST_INPUTS", "experts_of", "important_inputs", "mixes"]

#: A stream may bring a thousand inputs, and each would be a time series.
MOST_INPUTS = 20
#: From one measurement to the next, in times that one takes.
_PAUSE = 100


class _Measured(NamedTuple):
    """The shares of a model's inputs as they were at a number of records, and until when they will do."""

    n_records: int | None
    shares: dict[str, float]
    until: float


_measured: WeakKeyDictionary[base.Base, _Measured] = WeakKeyDictionary()


def mixes(model: Model) -> bool:
    """Return whether a model, or the last step of a pipeline, mixes experts."""
    return hasattr(last_step(model), "expert_weights")


def experts_of(model: Model) -> dict[str, float]:
    """Return the weight of each expert, by name; empty for other models and before the first labeled record."""
    return dict(last_step(model).expert_weights) if mixes(model) else {}  # type: ignore[attr-defined]


def important_inputs(model: Model, exact: bool = False) -> dict[str, float]:
    """Return the shares of the most important inputs by name, the largest first.

    Measuring them takes up to a thousand predictions. So they are measured again at most 1% of the time, and are
    those of a moment ago in between.

    Parameters
    ----------
    model
        Any; there are none without experts, of experts that do not weigh their inputs, and before the first record.
    exact
        Whether the shares must be those of now.

    """
    if not mixes(model):
        return {}
    step, start = last_step(model), time.monotonic()
    n_records, kept = getattr(step, "n_records", None), _measured.get(step)
    if kept is None or n_records is None or (n_records != kept.n_records and (exact or start >= kept.until)):
        shares = getattr(step, "feature_importances_", {})
        largest = dict(heapq.nlargest(MOST_INPUTS, shares.items(), key=lambda item: item[1]))
        now = time.monotonic()
        pause = _PAUSE * (now - start) if largest else 0.0  # the first ones are waited for
        kept = _measured[step] = _Measured(n_records, largest, now + pause)
    return dict(kept.shares)
