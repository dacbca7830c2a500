"""How a configuration did on a source that ends: figures and curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.shown.view import View

__all__ = ["Evaluation"]


@dataclass
class Evaluation:
    """How a configuration did.

    Attributes
    ----------
    view
        The last picture.
    records, loss, features
        The curves: after how many records, the progressive loss (NaN before the first) and the features, where the
        model has them.

    """

    view: View
    records: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    features: list[int] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return everything by name."""
        curve: dict[str, Any] = {"records": self.records, "progressive_loss": self.loss}
        if self.features:
            curve["features"] = self.features
        return {**self.view.to_json(), "curve": curve}
