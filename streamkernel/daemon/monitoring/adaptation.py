"""Changes that an adaptive estimator made of its own accord: drifts it detected, metrics it learnt anew."""

from __future__ import annotations

from streamkernel.daemon.base.mixture import mixes
from streamkernel.daemon.base.model import Model, last_step

__all__ = ["Adaptation"]


class Adaptation:
    """Compares an adaptive estimator with what it was at the last look; other models never change so.

    Parameters
    ----------
    model
        As it is before the first look.

    """

    def __init__(self, model: Model) -> None:
        self._n_drifts = _n_drifts(model)
        self._importances = _importances(model)

    def drifted(self, model: Model) -> bool:
        """Return whether a drift was detected since the last look."""
        before, self._n_drifts = self._n_drifts, _n_drifts(model)
        return self._n_drifts > before

    def relearnt(self, model: Model) -> bool:
        """Return whether another metric is in force than at the last look."""
        before, self._importances = self._importances, _importances(model)
        return self._importances != before


def _n_drifts(model: Model) -> int:
    return int(getattr(last_step(model), "n_drifts_detected", 0))


def _importances(model: Model) -> dict[str, float]:
    """Return the shares of the inputs, which only a new metric changes; with lags they move with every record."""
    step = last_step(model)
    if not mixes(model) or getattr(step, "lags", None):
        return {}
    return dict(step.feature_importances_)  # type: ignore[attr-defined]
