"""The metrics of daemons of all kinds, and of a service, while all is well."""

from __future__ import annotations

from tests.mixin.timeline import Series, counter, gauge, series, stamp

_BUCKETS = ("0.05", "0.1", "0.25", "+Inf")


def _s(name: str, **labels: str) -> str:
    return series(f"streamkernel_{name}", **labels)


# Another exporter, whose process is down and restarts all the time, is none of our business.
_OTHERS = {
    series("up", job="node"): gauge(0),
    series("process_start_time_seconds", job="node"): stamp(),
}
_DAEMON = {
    series("up"): gauge(1),
    series("process_start_time_seconds"): gauge(1),
    _s("snapshot_timestamp_seconds"): stamp(),
    _s("records_consumed_total"): counter(1000),
    _s("records_learned_total"): counter(900),
    _s("records_dead_lettered_total", reason="target"): counter(2),
    _s("records_dead_lettered_total", reason="corrupt"): counter(0),
    _s("ignored_inputs_total"): counter(1),
    _s("last_record_timestamp_seconds"): stamp(),
    _s("consumer_lag_records", topic="clicks", partition="0"): gauge(20_000),
    _s("consumer_lag_records", topic="clicks", partition="1"): gauge(10),
    _s("output_latency_seconds_bucket", output="predictions", le="1.0"): counter(1000),
    _s("output_latency_seconds_bucket", output="predictions", le="60.0"): counter(1000),
    _s("output_latency_seconds_bucket", output="predictions", le="+Inf"): counter(1000),
    _s("checkpoint_last_success_timestamp_seconds"): stamp(every=5),
    _s("checkpoint_failures_total"): gauge(3),
    _s("not_finite_total", value="prediction"): gauge(7),
    _s("not_finite_total", value="loss"): gauge(0),
    _s("progressive_loss"): gauge(0.3),
}
_MODELS = {
    _s("drift_events_total"): gauge(4),
    _s("metric_relearnings_total"): counter(1 / 30),
    _s("loss_observations_total"): counter(900),
    _s("calibration_error"): gauge(0.02),
    _s("interval_coverage", level="0.9"): gauge(0.89),
    _s("random_features"): gauge(512),
    _s("max_features"): gauge(4096),
    _s("model_enabled", model="champion"): gauge(1),
    _s("model_enabled", model="challenger"): gauge(1),
    _s("rolling_metric", metric="flagged", window="1000"): gauge(0.05),
    _s("rolling_metric", metric="accuracy", window="1000"): gauge(0.9),
    _s("divergence_nats"): gauge(-0.01),
    _s("sample_share", sample="p"): gauge(0.5),
    _s("sample_share", sample="q"): gauge(0.5),
    _s("window_refit_seconds_total"): counter(6),
    _s("window_refit_failures_total"): gauge(1),
    _s("window_refits_total"): counter(0.5),
    _s("window_refit_last_seconds"): gauge(12),
}
_LABELS = {
    _s("labels_consumed_total"): counter(900),
    _s("labels_matched_total"): counter(900),
    _s("labels_expired_total"): counter(10),
    _s("labels_pending"): gauge(1000),
    _s("labels_max_pending"): gauge(100_000),
    _s("labels_pending_bytes"): gauge(2**20),
    _s("labels_max_pending_bytes"): gauge(2**28),
    _s("label_delay_seconds_bucket", le="3600.0"): counter(30),
    _s("label_delay_seconds_bucket", le="86400.0"): counter(30),
    _s("label_delay_seconds_bucket", le="+Inf"): counter(30),
}
_SERVICE = {
    _s("model_checkpoint_timestamp_seconds"): stamp(),
    _s("model_reload_failures_total"): gauge(2),
    _s("journal_records_total", journal="source", result="accepted"): counter(10),
    _s("journal_bytes", journal="source"): gauge(10),
    _s("journal_max_bytes", journal="source"): gauge(100),
    _s("journal_refused_total", journal="source"): gauge(5),
    _s("http_requests_total", path="/predict", status="200"): counter(1000),
    _s("http_requests_total", path="/predict", status="503"): counter(1),
    **{_s("http_request_duration_seconds_bucket", path="/predict", le=bound): counter(1000) for bound in _BUCKETS},
}
_GROUP = {
    _s(name, instance="member:9108", partition=partition, topic=topic): values
    for partition in ("0", "1")
    for name, topic, values in (
        ("records_consumed_total", "", counter(100)),
        ("consumer_lag_records", "orders", gauge(50)),
    )
}
WELL: Series = {**_OTHERS, **_DAEMON, **_MODELS, **_LABELS, **_SERVICE, **_GROUP}
