"""The rows for some runs only: several models, refits of a window, detectors."""

from __future__ import annotations

from configs.mixin.panels.board_row import BoardRow
from configs.mixin.panels.drawing import lines
from configs.mixin.panels.queries import PanelQuery, chosen, increase, rate
from configs.mixin.settings import AlertBounds

__all__ = ["detectors", "refits", "several_models"]

_EACH = "{{instance}} {{partition}}"
_MODEL = f"{{{{model}}}} {_EACH}"


def several_models() -> BoardRow:
    """Return the row on several models side by side."""
    interval = f"delta({chosen('model_loss_sum')}[$__rate_interval]) / {increase('model_loss_observations_total')}"
    loss = lines(
        "Progressive loss of each model",
        "The mean of the loss of each over the last labeled records.",
        PanelQuery(chosen("model_progressive_loss"), _MODEL),
    )
    rolling = lines(
        "Rolling metrics of each model",
        "The report metrics of each over the last labeled records.",
        PanelQuery(chosen("model_rolling_metric"), f"{{{{metric}}}} {_MODEL}"),
    )
    mean = lines(
        "Mean loss of the interval of each model",
        "The mean of the losses of the interval.",
        PanelQuery(interval, _MODEL),
    )
    state = lines(
        "Published and enabled models",
        "1 for the one whose prediction is published, and 0 for one that failed and is disabled.",
        PanelQuery(chosen("model_published"), f"published: {_MODEL}"),
        PanelQuery(chosen("model_enabled"), f"enabled: {_MODEL}"),
        bounds=(0, 1),
    )
    busy = lines(
        "Share of the time at work on each model",
        "Seconds at work on each by the second.",
        PanelQuery(rate("model_busy_seconds_total"), _MODEL),
        unit="percentunit",
        stacked=True,
    )
    events = lines(
        "Events of each model per second",
        "Events given to each, those it refused, and predictions that were not finite.",
        PanelQuery(rate("model_events_total"), f"events: {_MODEL}"),
        PanelQuery(rate("model_refused_events_total"), f"refused: {_MODEL}"),
        PanelQuery(rate("model_not_finite_predictions_total"), f"not finite: {_MODEL}"),
        unit="cps",
    )
    return BoardRow("Several models", [[loss, rolling, mean], [state, busy, events]], folded=True)


def refits(bounds: AlertBounds) -> BoardRow:
    """Return the row on the refits of a window."""
    windowed = chosen("window_loss")
    records = lines(
        "Records in the window",
        "The labeled records that the next refit solves, and the most it keeps.",
        PanelQuery(chosen("window_records"), f"records {_EACH}"),
        PanelQuery(chosen("window_max_records"), f"at most {_EACH}"),
    )
    last = lines(
        "Seconds of a refit",
        "How long the last refit held up the stream.",
        PanelQuery(chosen("window_refit_last_seconds"), _EACH),
        unit="s",
        thresholds={bounds.refit_seconds: "red"},
    )
    share = lines(
        "Share of the time in refits",
        "Where it comes near 1, records come faster than they are learned: a larger every, a smaller window or "
        "fewer passes.",
        PanelQuery(rate("window_refit_seconds_total"), _EACH),
        unit="percentunit",
        thresholds={bounds.refit_share: "red"},
    )
    count = lines(
        "Refits",
        "Refits of the interval, and those that the solver refused.",
        PanelQuery(increase("window_refits_total"), f"refits {_EACH}"),
        PanelQuery(increase("window_refit_failures_total"), f"failures {_EACH}"),
        bounds=(0, None),
    )
    progressive = f"{chosen('progressive_loss')} and on (job, instance, partition) {windowed}"
    loss = lines(
        "Loss of the window",
        "The mean loss of the window right after the last refit, beside the progressive loss.",
        PanelQuery(windowed, f"of the window {_EACH}"),
        PanelQuery(progressive, f"progressive {_EACH}"),
    )
    return BoardRow("Window refits", [[records, last, share], [count, loss]], folded=True)


def detectors(bounds: AlertBounds) -> BoardRow:
    """Return the row on novelties and on two samples."""
    flagged = f"{rate('novelties_total')} / {rate('records_learned_total')}"
    novelties = lines(
        "Records flagged as novelties",
        "The share of the last records that was flagged, and of those of the interval; nu where all is usual.",
        PanelQuery(chosen("rolling_metric", 'metric="flagged"'), f"of the last records {_EACH}"),
        PanelQuery(flagged, f"of the interval {_EACH}"),
        unit="percentunit",
        thresholds={bounds.flagged_share: "red"},
    )
    threshold = lines(
        "Novelty threshold",
        "What f(x) of a usual record is at least. It moves much where the stream changes.",
        PanelQuery(chosen("novelty_threshold"), _EACH),
    )
    divergence = lines(
        "Divergence of two samples",
        "Of a density ratio, in nats: about 0 where the samples p and q are alike.",
        PanelQuery(chosen("divergence_nats"), _EACH),
        thresholds={bounds.divergence_nats: "red"},
    )
    shares = lines(
        "Share of each sample",
        "Of a density ratio: where one of them is missing, a drift is not seen.",
        PanelQuery(chosen("sample_share"), f"{{{{sample}}}} {_EACH}"),
        unit="percentunit",
        bounds=(0, 1),
    )
    return BoardRow("Detectors", [[novelties, threshold, divergence, shares]], folded=True)
