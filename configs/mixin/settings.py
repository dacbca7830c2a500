"""The settings of the mixin: where its links lead, which targets are ours, and the bounds of the alerts."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["AlertBounds", "MixinSettings"]


def _bound(value: float, text: str) -> float:
    bound: float = field(default=value, metadata={"text": text})
    return bound


@dataclass(frozen=True)
class AlertBounds:
    """The thresholds of all alerts; the text of each is in the metadata of its field."""

    restarts: float = _bound(2, "restarts in 15 minutes")
    stuck_seconds: float = _bound(180, "age of the figures that the loop publishes, in seconds")
    silent_seconds: float = _bound(3600, "seconds since the last record: set it longer than any pause of your source")
    lag_records: float = _bound(10_000, "records still to come. Below it, a growing lag fires no alert")
    checkpoint_seconds: float = _bound(900, "age of the last checkpoint, in seconds: a few times `every_seconds`")
    dead_letter_share: float = _bound(0.01, "share of the records that are dead letters")
    ignored_inputs_a_record: float = _bound(0.1, "inputs over a limit, per record")
    output_latency_seconds: float = _bound(
        10,
        "time until 99 of 100 lines can be read, in seconds: over `flush_seconds`; of .gz, .zst and Parquet, "
        "over `every_seconds`",
    )
    loss_deviations: float = _bound(
        3, "how far the loss of 15 minutes may exceed its weekly mean, in standard deviations"
    )
    loss_growth: float = _bound(0.2, "and how far it may exceed that mean, as a share")
    drifts_an_hour: float = _bound(0, "drifts per hour that the model detected")
    relearnings_an_hour: float = _bound(3, "metrics relearned per hour")
    not_finite: float = _bound(0, "predictions and losses in 15 minutes that were not finite")
    calibration_error: float = _bound(0.1, "expected calibration error of the probabilities")
    coverage_error: float = _bound(0.07, "distance of the coverage of the 90% interval from .9")
    calibration_records: float = _bound(
        1000, "labeled records since the start. With fewer, these two alerts do not fire"
    )
    labels_silent_seconds: float = _bound(
        1800, "seconds without a label: set it longer than any pause of your labels, such as between daily files"
    )
    label_delay_seconds: float = _bound(
        43_200, "time that 9 of 10 labels take at most, in seconds: half of `labels.timeout_seconds`"
    )
    labels_expired_share: float = _bound(0.1, "share of the records that got no label in time")
    labels_pending_share: float = _bound(0.8, "share of the limits on records that wait for labels")
    flagged_share: float = _bound(0.15, "share of the last records flagged as novelties: three times a `nu` of .05")
    divergence_nats: float = _bound(0.1, "divergence of two samples, in nats")
    sample_share: float = _bound(0.05, "least share of each of two samples among the last records")
    refit_share: float = _bound(0.5, "share of the time spent on refits")
    refit_seconds: float = _bound(60, "seconds that one refit takes: set the delay you accept for predictions")
    model_age_seconds: float = _bound(600, "age of the model that a service predicts with, in seconds")
    journal_share: float = _bound(0.75, "share of a journal that is full")
    http_error_share: float = _bound(0.01, "share of the requests that are answered with 5xx")
    http_seconds: float = _bound(0.1, "time that 99 of 100 requests take at most, in seconds")


@dataclass(frozen=True)
class MixinSettings:
    """What a site changes of the mixin.

    Attributes
    ----------
    runbooks
        The address below which the runbooks are served, as `make docs` writes them.
    dashboards
        Where a reader of an alert finds the dashboards: a search, for neither of them has a fixed uid.
    selector
        The label matcher of our targets, for metrics that others export too.
    bounds
        The bounds of the alerts.

    """

    runbooks: str = "https://streamkernel.github.io/streamkernel/runbooks"
    dashboards: str = "http://localhost:3000/dashboards?query=streamkernel"
    selector: str = 'job=~"streamkernel.*"'
    bounds: AlertBounds = field(default_factory=AlertBounds)
