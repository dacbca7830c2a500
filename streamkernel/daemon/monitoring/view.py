"""The state of the daemon at one moment, for the progress bar, the status page, the table and the gauges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streamkernel.daemon.monitoring.model_view import ModelView

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """A snapshot of the daemon."""

    account: Mapping[str, int] = field(default_factory=dict)  # `RecordCounts`, since the first start
    taken: int = 0  # records this process consumed
    seconds: float = 0.0  # since this process began
    rate: float = math.nan  # records a second since the first batch was learned: compiling does not count
    offset: int = 0  # where the source continues
    loss: float = math.nan  # the progressive loss
    loss_sum: float = 0.0  # of all losses of this process
    losses_not_finite: int = 0  # its losses that no mean can be taken of
    overall: Mapping[str, float] = field(default_factory=dict)  # the report metrics over all records of this process
    baseline: Mapping[str, float] = field(default_factory=dict)  # those of the majority class, or of the mean so far
    rolling: Mapping[str, float] = field(default_factory=dict)  # and over the last ones
    # Of several targets, those of each, over all records of this process and over the last ones.
    targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rolling_targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    window: int = 0  # how many labeled records the progressive loss and the rolling metrics look back; 0: not known
    # Features, blocks, grown and reused, where the model has them.
    growth: Mapping[str, int] = field(default_factory=dict)
    experts: Mapping[str, float] = field(default_factory=dict)  # the weights of its experts, where it has them
    inputs: Mapping[str, float] = field(default_factory=dict)  # the shares of its most important inputs
    # Drifts detected and metrics learned, where the model adapts.
    changes: Mapping[str, int] = field(default_factory=dict)
    check_margin: float = math.nan  # by how much inequality (9) held, where the model grows by CDSG
    calibration_error: float = math.nan  # of a classifier with probabilities
    interval_coverage: float = math.nan  # of a regressor with deviations: the share of targets within the central 90%
    loop_seconds: Mapping[str, float] = field(default_factory=dict)  # of the loop of this process, by activity
    slowest_record: float = math.nan  # seconds, of the last one to two minutes
    # `LabelCounts`, and how many wait; empty without late labels.
    labels: Mapping[str, int] = field(default_factory=dict)
    checkpoint: str = "off"  # a phrase on the last checkpoint
    models: Mapping[str, ModelView] = field(default_factory=dict)  # of several, each by its name

    def phrase(self) -> str:
        """Return how many records were consumed, and the progressive loss where this process has learned any.

        Examples
        --------
        >>> View({"consumed": 1500}, loss=0.25).phrase(), View({"consumed": 1500}).phrase()
        ('1,500 records: progressive loss 0.25', '1,500 records')

        """
        loss = "" if math.isnan(self.loss) else f": progressive loss {self.loss:.4g}"
        return f"{self.account.get('consumed', 0):,} records{loss}"

    def to_json(self) -> dict[str, Any]:
        """Return the figures by the names that `evaluate --json` gives them."""
        return {
            "account": dict(self.account),
            "records": self.taken,
            "seconds": self.seconds,
            "records_per_second": self.rate,
            "metrics": dict(self.overall),
            **({"baseline": dict(self.baseline)} if self.baseline else {}),
            "rolling": dict(self.rolling),
            **({"targets": {name: dict(one) for name, one in self.targets.items()}} if self.targets else {}),
            "progressive_loss": self.loss,
            **({"losses_not_finite": self.losses_not_finite} if self.losses_not_finite else {}),
            **({"labels": dict(self.labels)} if self.labels else {}),
            **self.growth,
            **self.changes,
            **({"expert_weights": dict(self.experts)} if self.experts else {}),
            **({"input_importance": dict(self.inputs)} if self.inputs else {}),
            **({"models": {name: one.to_json() for name, one in self.models.items()}} if self.models else {}),
        }

    def by_model(self) -> dict[str, View]:
        """Return a view for each of several models by its name and state; the account is the published one's."""
        return {f"{name} ({one.state})": self._of(one) for name, one in self.models.items()}

    def _of(self, one: ModelView) -> View:
        return replace(
            View() if not one.published else self,
            taken=self.taken if one.published else one.shown_here,
            seconds=one.seconds,
            loss=one.loss,
            loss_sum=one.loss_sum,
            losses_not_finite=one.losses_not_finite,
            rate=self.rate if one.published else math.nan,
            overall=one.overall,
            baseline=one.baseline,
            rolling=one.rolling,
            targets=self.targets if one.published else {},
            window=self.window,
            growth=one.growth,
            models={},
        )
