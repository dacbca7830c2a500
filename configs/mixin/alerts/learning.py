"""Alerts on what is learnt: the loss, drifts, calibration, numbers that are none, growth, and disabled models."""

from __future__ import annotations

from configs.mixin.alerts.alert import Alert
from configs.mixin.rules import LOSS, LOSS_DEVIATION, LOSS_OF_THE_WEEK
from configs.mixin.settings import AlertBounds

__all__ = ["learning_alerts"]


def learning_alerts(bounds: AlertBounds) -> list[Alert]:
    """Return the alerts on learning."""
    return [
        Alert(
            "StreamkernelLossAboveItsWeek",
            f"{LOSS} - {LOSS_OF_THE_WEEK} > {bounds.loss_deviations:g} * {LOSS_DEVIATION}\n"
            f"  and {LOSS} - {LOSS_OF_THE_WEEK} > {bounds.loss_growth:g} * abs({LOSS_OF_THE_WEEK})\n"
            f"  and present_over_time({LOSS}[6d] offset 1d)",  # a day of history at least
            "warning",
            "the loss of {{ $labels.instance }} is {{ $value | humanize }} above the mean of its week",
            f"for 15 minutes the loss is {bounds.loss_deviations:g} standard deviations and "
            f"{bounds.loss_growth:.0%} above "
            "the mean of the week before; it takes a day of history",
            "compare the inputs of late with those before: a sensor, a unit, a new kind of record",
            hold="15m",
        ),
        Alert(
            "StreamkernelConceptDrift",
            f"increase(streamkernel_drift_events_total[1h]) > {bounds.drifts_an_hour:g}",
            "info",
            "the model of {{ $labels.instance }} noticed {{ $value | humanize }} drifts within an hour",
            f"an adaptive model noticed more than {bounds.drifts_an_hour:g} drifts within an hour",
            "see what else happened at that time; the model adapts by itself",
        ),
        Alert(
            "StreamkernelMetricRelearnedOften",
            f"increase(streamkernel_metric_relearnings_total[1h]) > {bounds.relearnings_an_hour:g}",
            "info",
            "the model of {{ $labels.instance }} relearnt its metric {{ $value | humanize }} times within an hour",
            f"an adaptive model relearnt its metric more than {bounds.relearnings_an_hour:g} times within an hour",
            "see which inputs' importances change",
        ),
        Alert(
            "StreamkernelNotFinite",
            f"sum without (value) (increase(streamkernel_not_finite_total[15m])) > {bounds.not_finite:g}",
            "warning",
            "{{ $value | humanize }} predictions or losses of {{ $labels.instance }} were no finite numbers",
            f"more than {bounds.not_finite:g} predictions or losses of a quarter of an hour were no finite numbers",
            "see whether it goes on: then the model has lost its state, and an older checkpoint has to be taken",
        ),
        Alert(
            "StreamkernelCalibrationOff",
            # Both begin anew with the process.
            f"streamkernel_calibration_error > {bounds.calibration_error:g}\n"
            f"  and streamkernel_loss_observations_total >= {bounds.calibration_records:g}",
            "warning",
            "the probabilities of {{ $labels.instance }} are {{ $value | humanizePercentage }} off",
            f"for 30 minutes the expected calibration error is over {bounds.calibration_error:g}, after "
            f"{bounds.calibration_records:g} labelled records at least",
            "take no decisions by thresholds of probabilities until it is known why",
            hold="30m",
        ),
        Alert(
            "StreamkernelCoverageOff",
            f'abs(streamkernel_interval_coverage{{level="0.9"}} - 0.9) > {bounds.coverage_error:g}\n'
            f"  and ignoring (level) streamkernel_loss_observations_total >= {bounds.calibration_records:g}",
            "warning",
            "the 90% interval of {{ $labels.instance }} is {{ $value | humanizePercentage }} off",
            f"for 30 minutes the share of targets within the 90% interval is more than {bounds.coverage_error:g} "
            f"from .9, after {bounds.calibration_records:g} labelled records at least",
            "see whether it is too low: then the standard deviations are too small to rely on",
            hold="30m",
        ),
        Alert(
            "StreamkernelFeatureBudgetReached",
            "streamkernel_random_features >= streamkernel_max_features",
            "info",
            "the model of {{ $labels.instance }} has grown to its {{ $value | humanize }} features",
            "for an hour a growing model has had as many random features as it may",
            "see whether the loss still falls; if not, a larger `max_features` may help",
            hold="1h",
        ),
        Alert(
            "StreamkernelModelDisabled",
            "streamkernel_model_enabled == 0",
            "warning",
            "the model {{ $labels.model }} of {{ $labels.instance }} failed and is disabled",
            "one of several models failed and learns no more",
            "the log says why; mend it and give it a new name, or drop it from `models`",
        ),
    ]
