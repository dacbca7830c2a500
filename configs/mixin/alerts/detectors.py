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
            f"for 5 minutes more than {bounds.flagged_share:.0%} of the last records are flagged as novelties",
            "look at the lines with a score above 0",
            hold="5m",
        ),
        Alert(
            "StreamkernelDrift",
            f"streamkernel_divergence_nats > {bounds.divergence_nats:g}",
            "warning",
            "the sample p of {{ $labels.instance }} differs from q by {{ $value | humanize }} nats",
            f"for 5 minutes the divergence of the two samples is over {bounds.divergence_nats:g} nats",
            "see which records have the largest predictions",
            hold="5m",
        ),
        Alert(
            "StreamkernelSampleMissing",
            f"streamkernel_sample_share < {bounds.sample_share:g}",
            "warning",
            "only {{ $value | humanizePercentage }} of the last records of {{ $labels.instance }} are of the sample "
            "{{ $labels.sample }}",
            f"for 5 minutes less than {bounds.sample_share:.0%} of the last records are of one of the two samples",
            "see why live records, or those of the reference, do not come: no drift is seen meanwhile",
            hold="5m",
        ),
    ]
