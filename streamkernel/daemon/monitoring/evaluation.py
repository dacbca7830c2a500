"""How a configuration did on a source that ends: figures and curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.monitoring.view import View

__all__ = ["Evaluation"]


@dataclass
class Evaluation:
    """How a configuration did."""

    view: View  # the last one
    records: list[int] = field(default_factory=list)  # after how many there are the points of the curves
    loss: list[float] = field(default_factory=list)  # the progressive one, NaN before the first
    features: list[int] = field(default_factory=list)  # where the model has them

    def to_json(self) -> dict[str, Any]:
        """Return everything by name."""
        curve: dict[str, Any] = {"records": self.records, "progressive_loss": self.loss}
        if self.features:
            curve["features"] = self.features
        return {**self.view.to_json(), "curve": curve}
