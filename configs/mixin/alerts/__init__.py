"""The alerts, by what they watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from configs.mixin.alerts.alert import Alert
from configs.mixin.alerts.checkpoints import checkpoint_alerts
from configs.mixin.alerts.detectors import detector_alerts
from configs.mixin.alerts.labels import label_alerts
from configs.mixin.alerts.learning import learning_alerts
from configs.mixin.alerts.process import process_alerts
from configs.mixin.alerts.service import service_alerts
from configs.mixin.alerts.stream import stream_alerts
from configs.mixin.alerts.window import window_alerts
from configs.mixin.settings import MixinSettings

__all__ = ["Alert", "alerting_rules", "alerts_by_group"]


def alerts_by_group(settings: MixinSettings) -> Mapping[str, Sequence[Alert]]:
    """Return all alerts by the name of their group."""
    return {
        "streamkernel-process": process_alerts(settings),
        "streamkernel-stream": stream_alerts(settings.bounds),
        "streamkernel-checkpoints": checkpoint_alerts(settings.bounds),
        "streamkernel-learning": learning_alerts(settings.bounds),
        "streamkernel-labels": label_alerts(settings.bounds),
        "streamkernel-detectors": detector_alerts(settings.bounds),
        "streamkernel-window": window_alerts(settings.bounds),
        "streamkernel-serve": service_alerts(settings.bounds),
    }


def alerting_rules(settings: MixinSettings) -> dict[str, object]:
    """Return the groups of alerts, as Prometheus reads them."""
    return {
        "groups": [
            {"name": group, "rules": [alert.rule(settings) for alert in alerts]}
            for group, alerts in alerts_by_group(settings).items()
        ]
    }
