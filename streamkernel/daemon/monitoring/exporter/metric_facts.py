"""The unit of each metric, and how a restart changes it. Prometheus's format has no field for either."""

from __future__ import annotations

__all__ = ["RESTARTS", "UNITS", "after_restart", "unit_of"]

# By the end of a name, the longest first.
_BY_ENDING = {
    "_timestamp_seconds": "seconds since 1970",
    "_start_time_seconds": "seconds since 1970",
    "_seconds": "seconds",
    "_bytes": "bytes",
    "_records": "records",
    "_fds": "file descriptors",
    "_nats": "nats",
}
# Of names whose end tells none.
UNITS = {
    **dict.fromkeys(("records_consumed", "records_learned", "records_predicted", "records_unlabeled"), "records"),
    **dict.fromkeys(("records_skipped", "records_dead_lettered", "record_keys_refused", "novelties"), "records"),
    "clipped_targets": "targets",
    **dict.fromkeys(("labels_expired", "labels_pending", "labels_max_pending"), "records"),
    **dict.fromkeys(("labels_consumed", "labels_matched", "labels_early", "labels_unmatched"), "labels"),
    **dict.fromkeys(("labels_doubled", "labels_skipped", "labels_dead_lettered", "labels_waiting"), "labels"),
    **dict.fromkeys(("progressive_loss", "loss_sum", "window_loss"), "loss"),
    **dict.fromkeys(("model_progressive_loss", "model_loss_sum"), "loss"),
    "check_margin": "unit of inequality (9)",
    **dict.fromkeys(("loss_observations", "model_loss_observations"), "losses"),
    **dict.fromkeys(("rolling_metric", "rolling_target_metric", "model_rolling_metric"), "unit of the report metric"),
    **dict.fromkeys(("expert_weight", "input_importance", "sample_share", "interval_coverage"), "share of 1"),
    "calibration_error": "probability",
    **dict.fromkeys(("random_features", "max_features"), "features"),
    "ignored_inputs": "inputs and labels",
    "ignored_labels": "records",
    "not_finite": "numbers",
    "model_not_finite_predictions": "predictions",
    "novelty_threshold": "score",
    "feature_blocks": "updates",
    "drift_events": "drifts",
    "metric_relearnings": "metrics",
    **dict.fromkeys(("window_refits", "window_refit_failures"), "refits"),
    **dict.fromkeys(("model_events", "model_refused_events"), "events"),
    **dict.fromkeys(("model_published", "model_enabled"), "0 or 1"),
    "build_info": "always 1",
    "model_checkpoint": "number of a checkpoint",
    "checkpoint_failures": "checkpoints",
    **dict.fromkeys(("model_reloads", "model_reload_failures"), "reloads"),
    "group_partitions": "partitions",
    **dict.fromkeys(("http_requests", "http_requests_in_flight", "journal_refused"), "requests"),
    "journal_groups": "groups",
}

_ZERO, _KEPT, _RESET, _CURRENT = "0", "kept", "reset", "current"
# Only gauges may keep their value: a counter starts at 0 with its process, as Prometheus expects.
_GAUGES = {
    _KEPT: (
        *("lifetime_records", "checkpoint_last_success_timestamp_seconds", "random_features", "check_margin"),
        *("expert_weight", "input_importance", "novelty_threshold", "divergence_nats", "sample_share"),
        *("window_records", "model_enabled", "labels_pending", "labels_pending_bytes", "labels_waiting"),
    ),
    _RESET: (
        *(
            "loss_sum",
            "model_loss_sum",
            "progressive_loss",
            "model_progressive_loss",
            "rolling_metric",
            "rolling_target_metric",
        ),
        *("model_rolling_metric", "calibration_error", "interval_coverage", "slowest_record_seconds"),
        *("last_record_timestamp_seconds", "snapshot_timestamp_seconds", "checkpoint_size_bytes"),
        *("window_refit_last_seconds", "window_loss", "http_requests_in_flight"),
    ),
    _CURRENT: (
        *("consumer_lag_records", "model_memory_bytes", "build_info", "max_features", "window_max_records"),
        *("model_published", "labels_max_pending", "labels_max_pending_bytes", "group_partitions"),
        *("model_checkpoint", "model_checkpoint_records", "model_checkpoint_timestamp_seconds"),
        *("journal_bytes", "journal_max_bytes", "process_virtual_memory_bytes", "process_resident_memory_bytes"),
        *("process_start_time_seconds", "process_open_fds", "process_max_fds"),
    ),
}
RESTARTS = {name: restart for restart, names in _GAUGES.items() for name in names}


def unit_of(name: str) -> str:
    """Return the unit of a metric by its name, without prefix and ``_total``.

    Raises
    ------
    KeyError
        Where it has none: a new metric has to be given one.

    Examples
    --------
    >>> unit_of("checkpoint_size_bytes"), unit_of("drift_events")
    ('bytes', 'drifts')

    """
    by_ending = (unit for ending, unit in _BY_ENDING.items() if name.endswith(ending))
    return next(by_ending, None) or UNITS[name]


def after_restart(name: str, kind: str) -> str:
    """Return what a restart does to a metric, by its name without prefix and ``_total``, and its type.

    Returns
    -------
    what
        ``"0"``: it starts at 0; ``"kept"``: it has the value in the checkpoint; ``"reset"``: it starts without the
        records of the previous process; ``"current"``: it shows the current state and no history.

    Raises
    ------
    KeyError
        Where nothing is known of a gauge: a new one has to be given a line.

    Examples
    --------
    >>> after_restart("drift_events", "counter"), after_restart("lifetime_records", "gauge")
    ('0', 'kept')

    """
    return _ZERO if kind in ("counter", "histogram") else RESTARTS[name]
