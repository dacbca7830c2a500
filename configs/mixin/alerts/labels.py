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
            f"for {bounds.labels_silent_seconds:g} s, and 5 minutes more, records came and no label did, which is none "
            f"of the first {bounds.label_delay_seconds:g} s of a run without any label so far",
            "see whether whoever writes the labels is alive, and the topic or the file is the right one",
            hold="5m",
        ),
        Alert(
            "StreamkernelLabelsLate",
            f"instance:streamkernel_label_delay_seconds:p90_rate30m > {bounds.label_delay_seconds:g}",
            "warning",
            "one label in ten of {{ $labels.instance }} takes longer than {{ $value | humanizeDuration }}",
            f"for 30 minutes one label in ten comes more than {bounds.label_delay_seconds:g} s after its record",
            "compare with `labels.timeout_seconds`, after which records are given up",
            hold="30m",
        ),
        Alert(
            "StreamkernelLabelsExpiring",
            f"instance:streamkernel_labels_expired:ratio_rate30m > {bounds.labels_expired_share:g}",
            "warning",
            "{{ $value | humanizePercentage }} of the records of {{ $labels.instance }} are given up without a label",
            f"for 15 minutes more than {bounds.labels_expired_share:.0%} of the records got no label in time",
            "see whether keys of labels and records still match, and how late labels come",
            hold="15m",
        ),
        Alert(
            "StreamkernelLabelsPending",
            f"streamkernel_labels_pending / streamkernel_labels_max_pending > {bounds.labels_pending_share:g}\n"
            "  or streamkernel_labels_pending_bytes / streamkernel_labels_max_pending_bytes > "
            f"{bounds.labels_pending_share:g}",
            "warning",
            "{{ $value | humanizePercentage }} of what may wait for labels at {{ $labels.instance }} waits",
            f"for 15 minutes the records that wait for labels take more than {bounds.labels_pending_share:.0%} of "
            "their limit",
            "raise `labels.max_pending` or `labels.max_pending_bytes` if memory allows it: beyond it the oldest "
            "are given up",
            hold="15m",
        ),
    ]
