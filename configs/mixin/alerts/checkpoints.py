"""Alerts on checkpoints: none is written, or one could not be."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.settings import AlertBounds

__all__ = ["checkpoint_alerts"]

_SAVED = "streamkernel_checkpoint_last_success_timestamp_seconds"


def checkpoint_alerts(bounds: AlertBounds) -> list[Alert]:
    """Return the alerts on checkpoints."""
    return [
        Alert(
            "StreamkernelCheckpointStale",
            # Where no record came since, there is nothing to save. The time is NaN before the first checkpoint, and
            # of a run that keeps none, where nothing fails either.
            f"(time() - {_SAVED} > {bounds.checkpoint_seconds:g}\n"
            f"  and streamkernel_last_record_timestamp_seconds > {_SAVED})\n"
            f"or (time() - process_start_time_seconds > {bounds.checkpoint_seconds:g}\n"
            "  and streamkernel_checkpoint_failures_total > 0\n"
            f"  and {_SAVED} != {_SAVED})",
            "critical",
            "{{ $labels.instance }} saved its last checkpoint {{ $value | humanizeDuration }} ago",
            f"the last checkpoint is older than {bounds.checkpoint_seconds:g} s, and records have come since then",
            "read the log for the reason, usually a full disk or an output that accepts no lines",
            hold="2m",
        ),
        Alert(
            "StreamkernelCheckpointFailing",
            "increase(streamkernel_checkpoint_failures_total[15m]) > 0",
            "warning",
            "{{ $labels.instance }} could not write {{ $value | humanize }} checkpoints in 15 minutes",
            "writing a checkpoint failed in the last 15 minutes",
            "free space on the disk that the log names",
        ),
    ]
