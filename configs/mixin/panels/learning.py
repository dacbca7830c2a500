"""The rows on learning and on the growth of the model."""

from __future__ import annotations

from configs.mixin.panels.board_row import BoardRow
from configs.mixin.panels.drawing import bars, lines
from configs.mixin.panels.queries import PanelQuery, chosen, increase, rate
from configs.mixin.rules import LOSS_DEVIATION, LOSS_OF_THE_WEEK
from configs.mixin.settings import AlertBounds

__all__ = ["growth", "learning"]


def learning(bounds: AlertBounds) -> BoardRow:
    """Return the row on the loss, the rolling metrics and the calibration."""
    week, deviation = chosen(LOSS_OF_THE_WEEK), chosen(LOSS_DEVIATION)
    interval = f"delta({chosen('loss_sum')}[$__rate_interval]) / {increase('loss_observations_total')}"
    loss = lines(
        "Progressive loss",
        "Mean of the loss over the last labeled records, each before it was learned; of numbers, in deviations of the "
        "targets. Beside it, after a day, the mean of the week before, and what the alert compares with.",
        PanelQuery(chosen("progressive_loss"), "{{instance}} {{partition}}"),
        PanelQuery(week, "mean of the week {{instance}} {{partition}}"),
        PanelQuery(
            f"{week} + {bounds.loss_deviations:g} * {deviation}",
            f"and {bounds.loss_deviations:g} deviations {{{{instance}}}} {{{{partition}}}}",
        ),
    )
    rolling = lines(
        "Rolling metrics",
        "The report metrics over the last labeled records; of several targets, their means and those of each.",
        PanelQuery(chosen("rolling_metric"), "{{metric}} {{instance}} {{partition}}"),
        PanelQuery(chosen("rolling_target_metric"), "{{metric}} of {{target}} {{instance}} {{partition}}"),
    )
    mean = lines(
        "Mean loss of the interval",
        "Increase of loss_sum over increase of loss_observations_total.",
        PanelQuery(interval, "{{instance}} {{partition}}"),
    )
    calibration = lines(
        "Calibration error",
        "Of a classifier with probabilities: how far they are from the frequencies of the classes, over the last "
        "labeled "
        "records.",
        PanelQuery(chosen("calibration_error"), "{{instance}} {{partition}}"),
        unit="percentunit",
        bounds=(0, None),
        thresholds={bounds.calibration_error: "red"},
    )
    coverage = lines(
        "Coverage of the interval",
        "Of a regressor with standard deviations: the share of the targets within the central interval; as large "
        "as its "
        "level where the deviations are right.",
        PanelQuery(chosen("interval_coverage"), "of {{level}} {{instance}} {{partition}}"),
        unit="percentunit",
        bounds=(0, 1),
    )
    return BoardRow("Learning", [[loss, rolling, mean], [calibration, coverage]])


def growth() -> BoardRow:
    """Return the row on the size of the model and what it is made of."""
    features = lines(
        "Features",
        "How far the model has grown, and its bound.",
        PanelQuery(chosen("random_features"), "features {{instance}} {{partition}}"),
        PanelQuery(f"{chosen('max_features')} < +Inf", "bound {{instance}} {{partition}}"),
    )
    blocks = lines(
        "Blocks grown and reused per second",
        "What the growth policy does with its steps.",
        PanelQuery(f"sum by (action, instance) ({rate('feature_blocks_total')})", "{{action}} {{instance}}"),
        unit="cps",
    )
    margin = lines(
        "Margin of the check",
        "Of CDSG: by how much the last check of a reused block held (above 0) or failed (below).",
        PanelQuery(chosen("check_margin"), "{{instance}} {{partition}}"),
    )
    weights = lines(
        "Expert weights",
        "How much the mixture of an adaptive estimator listens to each expert.",
        PanelQuery(chosen("expert_weight"), "{{expert}} {{instance}} {{partition}}"),
        unit="percentunit",
        bounds=(0, 1),
    )
    importance = bars(
        "Input importance",
        "The inputs that move the prediction of an adaptive estimator most, by the last metric it learned.",
        PanelQuery(f"sort_desc({chosen('input_importance')})", "{{input}} {{instance}} {{partition}}"),
        unit="percentunit",
    )
    drifts = lines(
        "Drifts and relearned metrics",
        "Of an adaptive estimator: changes that it noticed, and metrics it learned again, in the interval.",
        PanelQuery(increase("drift_events_total"), "drifts {{instance}} {{partition}}"),
        PanelQuery(increase("metric_relearnings_total"), "metrics relearned {{instance}} {{partition}}"),
        bounds=(0, None),
    )
    memory = lines(
        "Model memory",
        "Bytes the model takes.",
        PanelQuery(chosen("model_memory_bytes"), "{{instance}} {{partition}}"),
        unit="bytes",
    )
    return BoardRow("Model growth", [[features, blocks, margin, memory], [weights, importance, drifts]])
