"""The result of a progressive validation: figures and curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.monitoring.view import View

__all__ = ["Evaluation"]


@dataclass
class Evaluation:
    """The result of a progressive validation of one configuration."""

    view: View  # the last one
    records: list[int] = field(default_factory=list)  # after how many there are the points of the curves
    loss: list[float] = field(default_factory=list)  # the progressive one, NaN before the first
    features: list[int] = field(default_factory=list)  # where the model has them

    def to_json(self) -> dict[str, Any]:
        """Return the figures and curves by the names that `evaluate --json` gives them."""
        curve: dict[str, Any] = {"records": self.records, "progressive_loss": self.loss}
        if self.features:
            curve["features"] = self.features
        return {**self.view.to_json(), "curve": curve}
