"""Changes that an adaptive estimator made of its own accord: drifts it detected, metrics it learned."""

from __future__ import annotations

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.monitoring.growth import changes_of

__all__ = ["Adaptation"]


class Adaptation:
    """Compares how often an adaptive estimator has changed with the last look; other models never change so.

    Parameters
    ----------
    model
        As it is before the first look.

    """

    def __init__(self, model: Model) -> None:
        self._seen = changes_of(model)

    def since_last(self, model: Model) -> tuple[int, int]:
        """Return how many drifts were detected, and how many metrics were learned, since the last look."""
        before, self._seen = self._seen, changes_of(model)
        new = {name: count - before.get(name, 0) for name, count in self._seen.items()}
        return new.get("drifts", 0), new.get("metric_relearnings", 0)
