"""Alerts on the process: it is gone, starts again and again, or its loop stands still."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.settings import MixinSettings

__all__ = ["process_alerts"]


def process_alerts(settings: MixinSettings) -> list[Alert]:
    """Return the alerts on the process."""
    ours, bounds = settings.selector, settings.bounds
    return [
        Alert(
            "StreamkernelDown",
            f"up{{{ours}}} == 0",
            "critical",
            "{{ $labels.instance }} of job {{ $labels.job }} does not answer",
            "Prometheus has had no answer from a target for 5 minutes",
            "read the last lines of the daemon's log, and look at its exit status",
            hold="5m",
        ),
        Alert(
            "StreamkernelTargetMissing",
            f"absent(up{{{ours}}})",
            "critical",
            "Prometheus has no target of streamkernel",
            f"Prometheus has had no target with `{ours}` for 5 minutes",
            "check whether the scrape configuration or the service discovery lost it",
            hold="5m",
        ),
        Alert(
            "StreamkernelRestarting",
            f"changes(process_start_time_seconds{{{ours}}}[15m]) > {bounds.restarts:g}",
            "critical",
            "{{ $labels.instance }} started {{ $value }} times in 15 minutes",
            f"a process started more than {bounds.restarts:g} times in 15 minutes",
            "read the last log line before a start: it says why the process ended",
        ),
        Alert(
            "StreamkernelLoopStuck",
            f"time() - streamkernel_snapshot_timestamp_seconds > {bounds.stuck_seconds:g}",
            "critical",
            "the loop of {{ $labels.instance }} has been stuck for {{ $value | humanizeDuration }}",
            f"the loop has published no figures for {bounds.stuck_seconds:g} s, then 2 minutes more",
            "check whether the log reports a refit, and whether the process uses its processor",
            hold="2m",
        ),
    ]
