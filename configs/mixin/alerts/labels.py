"""Alerts on late labels: they do not come, come late, or too many records wait for them."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.settings import AlertBounds

__all__ = ["label_alerts"]

# Of a member of a group, its processes for the partitions have a start each.
_AGE = "time() - process_start_time_seconds"


def label_alerts(bounds: AlertBounds) -> list[Alert]:
    """Return the alerts on late labels."""
    silent = f"{bounds.labels_silent_seconds:.0f}s"
    return [
        Alert(
            "StreamkernelLabelsMissing",
            # The first labels may take as long as they do by nature: until then none is missing.
            f"increase(streamkernel_labels_consumed_total[{silent}]) == 0\n"
            f"  and increase(streamkernel_records_consumed_total[{silent}]) > 0\n"
            "  and streamkernel_labels_pending > 0\n"
            "  and (max_over_time(streamkernel_labels_consumed_total[1d]) > 0\n"
            f"    or {_AGE} > {bounds.label_delay_seconds:g})",
            "critical",
            "{{ $labels.instance }} gets records and no labels: it learns nothing",
            f"records came but no labels for {bounds.labels_silent_seconds:g} s, then 5 minutes more; a run that "
            f"never had a label first gets {bounds.label_delay_seconds:g} s",
            "check that the producer of the labels is alive, and that the topic or file is right",
            hold="5m",
        ),
        Alert(
            "StreamkernelLabelsLate",
            f"instance:streamkernel_label_delay_seconds:p90_rate30m > {bounds.label_delay_seconds:g}",
            "warning",
            "one label in ten of {{ $labels.instance }} takes longer than {{ $value | humanizeDuration }}",
            f"one label in ten has come more than {bounds.label_delay_seconds:g} s after its record, for 30 minutes",
            "compare the delay with `labels.timeout_seconds`, after which the daemon drops a record",
            hold="30m",
        ),
        Alert(
            "StreamkernelLabelsExpiring",
            f"instance:streamkernel_labels_expired:ratio_rate30m > {bounds.labels_expired_share:g}",
            "warning",
            "{{ $value | humanizePercentage }} of the records of {{ $labels.instance }} expire without a label",
            f"more than {bounds.labels_expired_share:.0%} of the records got no label in time, for 15 minutes",
            "check whether the keys of labels and records still match, and how late labels come",
            hold="15m",
        ),
        Alert(
            "StreamkernelLabelsPending",
            f"streamkernel_labels_pending / streamkernel_labels_max_pending > {bounds.labels_pending_share:g}\n"
            "  or streamkernel_labels_pending_bytes / streamkernel_labels_max_pending_bytes > "
            f"{bounds.labels_pending_share:g}",
            "warning",
            "records that wait for labels use {{ $value | humanizePercentage }} of the limit at {{ $labels.instance }}",
            f"records that wait for labels have used more than {bounds.labels_pending_share:.0%} of their limit for "
            "15 minutes",
            "raise `labels.max_pending` or `labels.max_pending_bytes` if memory allows it: past the limit the daemon "
            "drops the oldest",
            hold="15m",
        ),
    ]
