"""Alerts on refits of a window: they take long, or fail."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.settings import AlertBounds

__all__ = ["window_alerts"]


def window_alerts(bounds: AlertBounds) -> list[Alert]:
    """Return the alerts on refits."""
    return [
        Alert(
            "StreamkernelRefitsTakeLong",
            f"rate(streamkernel_window_refit_seconds_total[15m]) > {bounds.refit_share:g}",
            "warning",
            "{{ $labels.instance }} spends {{ $value | humanizePercentage }} of its time in refits",
            f"refits have taken more than {bounds.refit_share:.0%} of the last 15 minutes, for 5 minutes",
            "try a larger `every`, a smaller `window`, fewer `max_passes` or a smaller `max_features`",
            hold="5m",
        ),
        Alert(
            "StreamkernelRefitFails",
            "increase(streamkernel_window_refit_failures_total[15m]) > 0",
            "warning",
            "the solver of {{ $labels.instance }} refused its window; the model continues without the refit",
            "the solver refused its window in the last 15 minutes",
            "read the log for the reason: usually the solver needs a larger `l2`",
        ),
        Alert(
            "StreamkernelLongRefit",
            # The time of the last refit stands until there is another one.
            f"streamkernel_window_refit_last_seconds > {bounds.refit_seconds:g}\n"
            "  and increase(streamkernel_window_refits_total[1h]) > 0",
            "warning",
            "the last refit of {{ $labels.instance }} held up its stream for {{ $value | humanizeDuration }}",
            f"the last refit was in the last hour and took more than {bounds.refit_seconds:g} s, while "
            "the stream waited",
            "try a smaller `window` or fewer `max_passes`; ignore it if latency does not matter",
        ),
    ]
