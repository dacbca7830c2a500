"""Alerts on detectors: novelties, a divergence of two samples, and a sample that does not come."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.settings import AlertBounds

__all__ = ["detector_alerts"]


def detector_alerts(bounds: AlertBounds) -> list[Alert]:
    """Return the alerts on detectors."""
    return [
        Alert(
            "StreamkernelManyNovelties",
            f'streamkernel_rolling_metric{{metric="flagged"}} > {bounds.flagged_share:g}',
            "warning",
            "{{ $labels.instance }} flags {{ $value | humanizePercentage }} of the last records as novelties",
            f"the model has flagged more than {bounds.flagged_share:.0%} of the last records as novelties, "
            "for 5 minutes",
            "look at the lines with a score above 0",
            hold="5m",
        ),
        Alert(
            "StreamkernelDrift",
            f"streamkernel_divergence_nats > {bounds.divergence_nats:g}",
            "warning",
            "the sample p of {{ $labels.instance }} differs from q by {{ $value | humanize }} nats",
            f"the divergence of the two samples has been over {bounds.divergence_nats:g} nats for 5 minutes",
            "see which records have the largest predictions",
            hold="5m",
        ),
        Alert(
            "StreamkernelSampleMissing",
            f"streamkernel_sample_share < {bounds.sample_share:g}",
            "warning",
            "only {{ $value | humanizePercentage }} of the last records of {{ $labels.instance }} are of the sample "
            "{{ $labels.sample }}",
            f"one of the two samples has had less than {bounds.sample_share:.0%} of the last records for 5 minutes",
            "find out why live or reference records do not come: meanwhile you see no drift",
            hold="5m",
        ),
    ]
