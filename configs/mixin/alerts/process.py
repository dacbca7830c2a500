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
            "the last lines of the daemon's log, and its exit status",
            hold="5m",
        ),
        Alert(
            "StreamkernelTargetMissing",
            f"absent(up{{{ours}}})",
            "critical",
            "Prometheus has no target of streamkernel",
            f"for 5 minutes there has been no target with `{ours}` at all",
            "see whether the scrape configuration or the service discovery lost it",
            hold="5m",
        ),
        Alert(
            "StreamkernelRestarting",
            f"changes(process_start_time_seconds{{{ours}}}[15m]) > {bounds.restarts:g}",
            "critical",
            "{{ $labels.instance }} started {{ $value }} times in a quarter of an hour",
            f"a process started more than {bounds.restarts:g} times in a quarter of an hour",
            "the last line of the log before a start says why it ended",
        ),
        Alert(
            "StreamkernelLoopStuck",
            f"time() - streamkernel_snapshot_timestamp_seconds > {bounds.stuck_seconds:g}",
            "critical",
            "the loop of {{ $labels.instance }} has not turned for {{ $value | humanizeDuration }}",
            f"the loop has published no figures for {bounds.stuck_seconds:g} s, and 2 minutes more",
            "see whether the log says that a refit is at work, and whether the process uses its processor",
            hold="2m",
        ),
    ]
