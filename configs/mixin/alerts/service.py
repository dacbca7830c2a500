"""Alerts on `streamkernel serve`: its model, its journals and its answers."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.settings import AlertBounds

__all__ = ["service_alerts"]

_MODEL = "streamkernel_model_checkpoint_timestamp_seconds"
# A newer model can be there only where something could be learnt: some run learns, or the service was given targets for
# one that does not. These are in the journal of the labels where there is one, else they come with their records.
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
            "{{ $labels.instance }} has no model: predictions are answered with 503",
            "for 5 minutes there is no model, and `/predict` answers 503",
            "start the run that learns; `/readyz` says why there is no model",
            hold="5m",
        ),
        Alert(
            "StreamkernelModelStale",
            f"time() - ({_MODEL} > 0) > {bounds.model_age_seconds:g}\n  and {_LEARNABLE.strip()}",
            "warning",
            "{{ $labels.instance }} predicts with a model of {{ $value | humanizeDuration }} ago",
            f"for 10 minutes the model has been older than {bounds.model_age_seconds:g} s, though a run learnt or the "
            "service was given records to learn from",
            "see whether the run that learns is alive and its checkpoints succeed",
            # As long as the increase looks back: when the last records come, a model that has them is not told of.
            hold="10m",
        ),
        Alert(
            "StreamkernelModelReloadFails",
            "increase(streamkernel_model_reload_failures_total[5m]) > 0",
            "warning",
            "{{ $labels.instance }} cannot use the newest checkpoint and goes on with the one before",
            "for 5 minutes the newest checkpoint could not be used; the one before answers",
            "the log says why: another model or version than the configuration's, or a damaged file",
            hold="5m",
        ),
        Alert(
            "StreamkernelJournalFilling",
            f"streamkernel_journal_bytes / streamkernel_journal_max_bytes > {bounds.journal_share:g}",
            "warning",
            "journal {{ $labels.journal }} of {{ $labels.instance }} is {{ $value | humanizePercentage }} full",
            f"for 5 minutes a journal has been more than {bounds.journal_share:.0%} full",
            "see whether the run that learns keeps up: each of its checkpoints makes room",
            hold="5m",
        ),
        Alert(
            "StreamkernelJournalRefuses",
            "increase(streamkernel_journal_refused_total[5m]) > 0",
            "critical",
            "journal {{ $labels.journal }} of {{ $labels.instance }} takes nothing more: it is full, or its disk is",
            "requests were refused in the last 5 minutes: the journal is full, or its disk is",
            "start the run that learns, or make room on the disk",
        ),
        Alert(
            "StreamkernelServeErrors",
            f"instance:streamkernel_http_requests:error_ratio_rate5m > {bounds.http_error_share:g}",
            "critical",
            "{{ $value | humanizePercentage }} of the requests to {{ $labels.instance }} are answered with 5xx",
            f"for 5 minutes more than {bounds.http_error_share:.0%} of the requests are answered with 5xx",
            "see them by status and path on the board: a 500 has its reason in the log",
            hold="5m",
        ),
        Alert(
            "StreamkernelServeSlow",
            f"instance_path:streamkernel_http_request_duration_seconds:p99_rate5m > {bounds.http_seconds:g}",
            "warning",
            "one in a hundred requests for {{ $labels.path }} of {{ $labels.instance }} takes over "
            "{{ $value | humanizeDuration }}",
            f"for 10 minutes one request in a hundred takes more than {bounds.http_seconds:g} s",
            "see whether requests became larger, the model slower, or the processor busy with something else",
            hold="10m",
        ),
    ]
