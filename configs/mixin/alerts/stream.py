"""Alerts on the stream: no records come, they come faster than they are learned, or they cannot be used."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.settings import AlertBounds

__all__ = ["stream_alerts"]

# The lag tells partitions of the topic apart, other metrics those of a member of a group only: there the two labels
# are the same one, elsewhere the lags of all partitions are one daemon's.
_STALLED = """
(increase(streamkernel_records_consumed_total{partition=""}[10m]) == 0
  and on (job, instance) sum by (job, instance) (streamkernel_consumer_lag_records) > 0)
or (increase(streamkernel_records_consumed_total{partition!=""}[10m]) == 0
  and on (job, instance, partition) sum by (job, instance, partition) (streamkernel_consumer_lag_records) > 0)
"""
_LAG = "instance:streamkernel_consumer_lag_records:sum"


def stream_alerts(bounds: AlertBounds) -> list[Alert]:
    """Return the alerts on the stream."""
    return [
        Alert(
            "StreamkernelSourceStalled",
            _STALLED,
            "critical",
            "{{ $labels.instance }} reads nothing although records are there",
            "the daemon has read no record for 10 minutes, then 5 more, although the topic has some",
            "ask the daemon's `/readyz` what it waits for",
            hold="5m",
        ),
        Alert(
            "StreamkernelSourceSilent",
            # NaN before the first record of a process, whose start counts then.
            "time() - (streamkernel_last_record_timestamp_seconds > 0\n"
            "  or (process_start_time_seconds and streamkernel_last_record_timestamp_seconds))"
            f" > {bounds.silent_seconds:g}",
            "warning",
            "{{ $labels.instance }} has had no record for {{ $value | humanizeDuration }}",
            f"the daemon processed its last record more than {bounds.silent_seconds:g} s ago",
            "check whether the producer of the source is alive",
            hold="5m",
        ),
        Alert(
            "StreamkernelLagGrowing",
            f"{_LAG} > {bounds.lag_records:g}\n  and deriv({_LAG}[30m]) > 0",
            "warning",
            "{{ $labels.instance }} is {{ $value | humanize }} records behind, and the lag grows",
            f"the lag has been over {bounds.lag_records:g} records and growing for 30 minutes",
            "see which activity takes the time of the loop",
            hold="30m",
        ),
        Alert(
            "StreamkernelDeadLetters",
            f"instance:streamkernel_records_dead_lettered:ratio_rate15m > {bounds.dead_letter_share:g}",
            "warning",
            "{{ $value | humanizePercentage }} of the records of {{ $labels.instance }} are dead letters",
            f"more than {bounds.dead_letter_share:.0%} of the records of the last 15 minutes have been dead letters, "
            "for 5 minutes",
            "see the reasons on the board, and the last dead letters on the status page",
            hold="5m",
        ),
        Alert(
            "StreamkernelInputsIgnored",
            "rate(streamkernel_ignored_inputs_total[30m])\n"
            f"  / rate(streamkernel_records_consumed_total[30m]) > {bounds.ignored_inputs_a_record:g}",
            "warning",
            "{{ $labels.instance }} ignores {{ $value | humanize }} inputs a record, because they are past its limits",
            f"the daemon has ignored more than {bounds.ignored_inputs_a_record:g} inputs a record for 30 minutes",
            "find the warning in the log, and exclude the column that identifies records",
            hold="30m",
        ),
        Alert(
            "StreamkernelOutputLate",
            f"instance_output:streamkernel_output_latency_seconds:p99_rate10m > {bounds.output_latency_seconds:g}",
            "warning",
            "lines of {{ $labels.instance }} for {{ $labels.output }} become visible after "
            "{{ $value | humanizeDuration }}",
            f"one line in a hundred has taken longer than {bounds.output_latency_seconds:g} s to become visible, "
            "for 10 minutes",
            "check whether the broker or the disk of the output is slow",
            hold="10m",
        ),
    ]
