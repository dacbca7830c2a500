"""Faults: for each alert the metrics that change while it has to fire, and no other may."""

from __future__ import annotations

from tests.mixin.timeline import Series, counter, gauge, lost, moving, series, stamp, unknown, vanishing


def _s(name: str, **labels: str) -> str:
    return series(f"streamkernel_{name}", **labels)


def _member(name: str, **labels: str) -> str:
    return _s(name, instance="member:9108", partition="1", **labels)


_PREDICT = {"path": "/predict"}
# Of records that do not come none is counted elsewhere.
_NO_RECORD = {
    _s("records_consumed_total"): counter(1000, 0),
    _s("records_dead_lettered_total", reason="target"): counter(2, 0),
    _s("ignored_inputs_total"): counter(1, 0),
}

FAULTS: list[tuple[str, Series]] = [
    ("StreamkernelDown", {series("up"): gauge(1, 0)}),
    ("StreamkernelTargetMissing", {series("up"): vanishing(1)}),
    ("StreamkernelRestarting", {series("process_start_time_seconds"): moving()}),
    ("StreamkernelLoopStuck", {_s("snapshot_timestamp_seconds"): stamp(stands=True)}),
    ("StreamkernelSourceStalled", _NO_RECORD),
    ("StreamkernelSourceStalled", {_member("records_consumed_total"): counter(100, 0)}),
    ("StreamkernelSourceSilent", {_s("last_record_timestamp_seconds"): stamp(stands=True)}),
    ("StreamkernelSourceSilent", {_s("last_record_timestamp_seconds"): unknown()}),
    ("StreamkernelLagGrowing", {_s("consumer_lag_records", topic="clicks", partition="0"): counter(0, 1000)}),
    ("StreamkernelDeadLetters", {_s("records_dead_lettered_total", reason="corrupt"): counter(0, 30)}),
    ("StreamkernelInputsIgnored", {_s("ignored_inputs_total"): counter(1, 500)}),
    (
        "StreamkernelOutputLate",
        {_s("output_latency_seconds_bucket", output="predictions", le="1.0"): counter(1000, 900)},
    ),
    ("StreamkernelCheckpointStale", {_s("checkpoint_last_success_timestamp_seconds"): stamp(stands=True)}),
    ("StreamkernelCheckpointStale", {_s("checkpoint_last_success_timestamp_seconds"): unknown()}),
    ("StreamkernelCheckpointFailing", {_s("checkpoint_failures_total"): counter(0, 1)}),
    ("StreamkernelConceptDrift", {_s("drift_events_total"): counter(0, 0.1)}),
    ("StreamkernelMetricRelearnedOften", {_s("metric_relearnings_total"): counter(1 / 30, 1)}),
    ("StreamkernelNotFinite", {_s("not_finite_total", value="loss"): counter(0, 1)}),
    ("StreamkernelCalibrationOff", {_s("calibration_error"): gauge(0.02, 0.3)}),
    ("StreamkernelCoverageOff", {_s("interval_coverage", level="0.9"): gauge(0.89, 0.7)}),
    ("StreamkernelFeatureBudgetReached", {_s("random_features"): gauge(512, 4096)}),
    ("StreamkernelModelDisabled", {_s("model_enabled", model="challenger"): gauge(1, 0)}),
    ("StreamkernelLabelsMissing", {_s("labels_consumed_total"): counter(900, 0)}),
    ("StreamkernelLabelsLate", {_s("label_delay_seconds_bucket", le="3600.0"): counter(30, 20)}),
    ("StreamkernelLabelsExpiring", {_s("labels_expired_total"): counter(10, 300)}),
    ("StreamkernelLabelsPending", {_s("labels_pending"): gauge(1000, 95_000)}),
    ("StreamkernelLabelsPending", {_s("labels_pending_bytes"): gauge(2**20, 2**28)}),
    ("StreamkernelManyNovelties", {_s("rolling_metric", metric="flagged", window="1000"): gauge(0.05, 0.3)}),
    ("StreamkernelDrift", {_s("divergence_nats"): gauge(-0.01, 0.4)}),
    ("StreamkernelSampleMissing", {_s("sample_share", sample="q"): gauge(0.5, 0.01)}),
    ("StreamkernelRefitsTakeLong", {_s("window_refit_seconds_total"): counter(6, 40)}),
    ("StreamkernelRefitFails", {_s("window_refit_failures_total"): counter(0, 1)}),
    ("StreamkernelLongRefit", {_s("window_refit_last_seconds"): gauge(12, 90)}),
    ("StreamkernelNoModel", {_s("model_checkpoint_timestamp_seconds"): lost()}),
    ("StreamkernelModelStale", {_s("model_checkpoint_timestamp_seconds"): stamp(stands=True)}),
    ("StreamkernelModelReloadFails", {_s("model_reload_failures_total"): counter(0, 1)}),
    ("StreamkernelJournalFilling", {_s("journal_bytes", journal="source"): gauge(10, 80)}),
    ("StreamkernelJournalRefuses", {_s("journal_refused_total", journal="source"): counter(0, 1)}),
    ("StreamkernelServeErrors", {_s("http_requests_total", **_PREDICT, status="503"): counter(1, 50)}),
    (
        "StreamkernelServeSlow",
        {
            _s("http_request_duration_seconds_bucket", **_PREDICT, le="0.05"): counter(1000, 900),
            _s("http_request_duration_seconds_bucket", **_PREDICT, le="0.1"): counter(1000, 900),
        },
    ),
]
