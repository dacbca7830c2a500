"""An alert: its expression, how long it has to hold, and what an operator is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from configs.mixin.settings import MixinSettings

__all__ = ["Alert"]


@dataclass(frozen=True)
class Alert:
    """An alert on a target.

    Attributes
    ----------
    name
        Its name, and that of its runbook.
    expr
        What it asks Prometheus.
    severity
        `critical`: somebody has to act now. `warning`: somebody has to look today. `info`: worth knowing.
    summary
        One sentence with the labels and the value of the case.
    when
        What has to be so for it to fire, after "it fires when".
    first
        What to do first, a clause without its full stop.
    hold
        How long the expression has to give something, as Prometheus writes it; empty: at once.

    """

    name: str
    expr: str
    severity: Literal["critical", "warning", "info"]
    summary: str
    when: str
    first: str
    hold: str = ""

    def rule(self, settings: MixinSettings) -> dict[str, object]:
        """Return the rule as Prometheus reads it."""
        annotations = {
            "summary": self.summary,
            "description": f"It fires when {self.when}. First, {self.first}.",
            "runbook_url": f"{settings.runbooks}/{self.name}.html",
            "dashboard_url": settings.dashboards,
        }
        hold = {"for": self.hold} if self.hold else {}
        labels = {"severity": self.severity}
        return {
            "alert": self.name,
            "expr": " ".join(self.expr.split()),
            **hold,
            "labels": labels,
            "annotations": annotations,
        }
