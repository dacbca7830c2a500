"""Alerts on `streamkernel serve`: its model, its journals and its answers."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.settings import AlertBounds

__all__ = ["service_alerts"]

_MODEL = "streamkernel_model_checkpoint_timestamp_seconds"
# A newer model can be there only where something could be learned: some run learns, or the service was given targets
# for one that does not. These are in the journal of the labels where there is one, else they come with their records.
_GIVEN = 'increase(streamkernel_journal_records_total{result="accepted",journal="%s"}[10m]) > 0'
_LEARNABLE = f"""
({_MODEL} and on () (sum(increase(streamkernel_records_learned_total[10m])) > 0)
  or {_MODEL} and on (job, instance) ({_GIVEN % "labels"})
  or {_MODEL} and on (job, instance) ({_GIVEN % "source"})
    unless on (job, instance) streamkernel_journal_records_total{{journal="labels"}})
"""


def service_alerts(bounds: AlertBounds) -> list[Alert]:
    """Return the alerts on the service."""
    return [
        Alert(
            "StreamkernelNoModel",
            f"{_MODEL} == 0",
            "critical",
            "{{ $labels.instance }} has no model and answers predictions with 503",
            "the service has had no model for 5 minutes, and `/predict` answers 503",
            "start the run that learns; `/readyz` says why there is no model",
            hold="5m",
        ),
        Alert(
            "StreamkernelModelStale",
            f"time() - ({_MODEL} > 0) > {bounds.model_age_seconds:g}\n  and {_LEARNABLE.strip()}",
            "warning",
            "{{ $labels.instance }} predicts with a model that is {{ $value | humanizeDuration }} old",
            f"the model has been older than {bounds.model_age_seconds:g} s for 10 minutes, although a run learned or "
            "the service got records to learn",
            "check that the run that learns is alive and its checkpoints succeed",
            # As long as the increase looks back: when the last records come, a model that has them is not told of.
            hold="10m",
        ),
        Alert(
            "StreamkernelModelReloadFails",
            "increase(streamkernel_model_reload_failures_total[5m]) > 0",
            "warning",
            "{{ $labels.instance }} cannot use the newest checkpoint and keeps the previous model",
            "the service has failed to use the newest checkpoint for 5 minutes, and the previous model answers",
            "read the log: the model or version differs from the configuration, or the file is damaged",
            hold="5m",
        ),
        Alert(
            "StreamkernelJournalFilling",
            f"streamkernel_journal_bytes / streamkernel_journal_max_bytes > {bounds.journal_share:g}",
            "warning",
            "journal {{ $labels.journal }} of {{ $labels.instance }} is {{ $value | humanizePercentage }} full",
            f"a journal has been more than {bounds.journal_share:.0%} full for 5 minutes",
            "check that the run that learns keeps up: each of its checkpoints frees space",
            hold="5m",
        ),
        Alert(
            "StreamkernelJournalRefuses",
            "increase(streamkernel_journal_refused_total[5m]) > 0",
            "critical",
            "journal {{ $labels.journal }} of {{ $labels.instance }} accepts nothing more: it or its disk is full",
            "the service refused requests in the last 5 minutes: the journal or its disk is full",
            "start the run that learns, or free space on the disk",
        ),
        Alert(
            "StreamkernelServeErrors",
            f"instance:streamkernel_http_requests:error_ratio_rate5m > {bounds.http_error_share:g}",
            "critical",
            "{{ $value | humanizePercentage }} of the requests to {{ $labels.instance }} get 5xx",
            f"more than {bounds.http_error_share:.0%} of the requests have got 5xx for 5 minutes",
            "see status and path on the board; the log has the reason for each 500",
            hold="5m",
        ),
        Alert(
            "StreamkernelServeSlow",
            f"instance_path:streamkernel_http_request_duration_seconds:p99_rate5m > {bounds.http_seconds:g}",
            "warning",
            "one in a hundred requests for {{ $labels.path }} of {{ $labels.instance }} takes over "
            "{{ $value | humanizeDuration }}",
            f"one request in a hundred has taken more than {bounds.http_seconds:g} s for 10 minutes",
            "check for larger requests, a slower model, or a busy processor",
            hold="10m",
        ),
    ]
