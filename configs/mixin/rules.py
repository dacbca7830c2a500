"""The recording rules: what alerts and panels share, named level:metric:operations."""

from __future__ import annotations

__all__ = ["LOSS", "LOSS_DEVIATION", "LOSS_OF_THE_WEEK", "recording_rules"]

LOSS = "instance:streamkernel_progressive_loss:avg15m"
LOSS_OF_THE_WEEK = "instance:streamkernel_progressive_loss:avg1w"
LOSS_DEVIATION = "instance:streamkernel_progressive_loss:stddev1w"

# The level `instance` has the labels job and instance, and of a member of a group also partition: nothing sums them up.
_STREAM = {
    "instance:streamkernel_records_dead_lettered:ratio_rate15m": (
        "sum without (reason) (rate(streamkernel_records_dead_lettered_total[15m]))\n"
        "  / rate(streamkernel_records_consumed_total[15m])"
    ),
    "instance:streamkernel_consumer_lag_records:sum": "sum by (job, instance) (streamkernel_consumer_lag_records)",
    "instance_output:streamkernel_output_latency_seconds:p99_rate10m": (
        "histogram_quantile(0.99, rate(streamkernel_output_latency_seconds_bucket[10m]))"
    ),
}
# The comparison leaves out NaN, which a loss is before the first label: one in a week would make the mean of it NaN.
# The week ends an hour ago, so that a loss that grows does not raise what it is compared with.
_LOSS = {
    LOSS: "avg_over_time(streamkernel_progressive_loss[15m]) > -Inf",
    LOSS_OF_THE_WEEK: f"avg_over_time({LOSS}[1w] offset 1h)",
    LOSS_DEVIATION: f"stddev_over_time({LOSS}[1w] offset 1h)",
}
_LABELS = {
    "instance:streamkernel_labels_expired:ratio_rate30m": (
        "rate(streamkernel_labels_expired_total[30m])\n"
        "  / (rate(streamkernel_labels_expired_total[30m]) + rate(streamkernel_labels_matched_total[30m]))"
    ),
    "instance:streamkernel_label_delay_seconds:p90_rate30m": (
        "histogram_quantile(0.9, rate(streamkernel_label_delay_seconds_bucket[30m]))"
    ),
}
_SERVICE = {
    "instance:streamkernel_http_requests:error_ratio_rate5m": (
        'sum by (job, instance) (rate(streamkernel_http_requests_total{status=~"5.."}[5m]))\n'
        "  / sum by (job, instance) (rate(streamkernel_http_requests_total[5m]))"
    ),
    "instance_path:streamkernel_http_request_duration_seconds:p99_rate5m": (
        "histogram_quantile(0.99, rate(streamkernel_http_request_duration_seconds_bucket[5m]))"
    ),
}
_GROUPS = {"stream": _STREAM, "loss": _LOSS, "labels": _LABELS, "serve": _SERVICE}


def recording_rules() -> dict[str, object]:
    """Return the groups of recording rules, as Prometheus reads them."""
    return {
        "groups": [
            {
                "name": f"streamkernel-{group}.rules",
                "rules": [{"record": name, "expr": " ".join(expression.split())} for name, expression in rules.items()],
            }
            for group, rules in _GROUPS.items()
        ]
    }
