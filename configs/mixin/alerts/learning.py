"""Alerts on learning: the loss, drifts, calibration, NaN, growth, and disabled models."""

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
            f"the loss has been {bounds.loss_deviations:g} standard deviations and {bounds.loss_growth:.0%} above the "
            "mean of the week before, for 15 minutes; this needs a day of history",
            "compare recent inputs with earlier ones: a sensor, a unit, a new kind of record",
            hold="15m",
        ),
        Alert(
            "StreamkernelConceptDrift",
            f"increase(streamkernel_drift_events_total[1h]) > {bounds.drifts_an_hour:g}",
            "info",
            "the model of {{ $labels.instance }} noticed {{ $value | humanize }} drifts within an hour",
            f"an adaptive model noticed more than {bounds.drifts_an_hour:g} drifts within an hour",
            "find out what else happened at that time; the model adapts",
        ),
        Alert(
            "StreamkernelMetricRelearnedOften",
            f"increase(streamkernel_metric_relearnings_total[1h]) > {bounds.relearnings_an_hour:g}",
            "info",
            "the model of {{ $labels.instance }} relearned its metric {{ $value | humanize }} times within an hour",
            f"an adaptive model relearned its metric more than {bounds.relearnings_an_hour:g} times within an hour",
            "see which inputs' importances change",
        ),
        Alert(
            "StreamkernelNotFinite",
            f"sum without (value) (increase(streamkernel_not_finite_total[15m])) > {bounds.not_finite:g}",
            "warning",
            "{{ $value | humanize }} predictions or losses of {{ $labels.instance }} were not finite",
            f"more than {bounds.not_finite:g} predictions or losses of the last 15 minutes were not finite",
            "see whether it continues: then the model has lost its state, and you need an older checkpoint",
        ),
        Alert(
            "StreamkernelCalibrationOff",
            # Both start over with the process.
            f"streamkernel_calibration_error > {bounds.calibration_error:g}\n"
            f"  and streamkernel_loss_observations_total >= {bounds.calibration_records:g}",
            "warning",
            "the probabilities of {{ $labels.instance }} are {{ $value | humanizePercentage }} off",
            f"the expected calibration error has been over {bounds.calibration_error:g} for 30 minutes, after at least "
            f"{bounds.calibration_records:g} labeled records",
            "base no decisions on probability thresholds until you know the cause",
            hold="30m",
        ),
        Alert(
            "StreamkernelCoverageOff",
            f'abs(streamkernel_interval_coverage{{level="0.9"}} - 0.9) > {bounds.coverage_error:g}\n'
            f"  and ignoring (level) streamkernel_loss_observations_total >= {bounds.calibration_records:g}",
            "warning",
            "the 90% interval of {{ $labels.instance }} is {{ $value | humanizePercentage }} off",
            f"the share of targets within the 90% interval has been more than {bounds.coverage_error:g} from 0.9 for "
            f"30 minutes, after at least {bounds.calibration_records:g} labeled records",
            "see whether it is too low: then the standard deviations are too small to rely on",
            hold="30m",
        ),
        Alert(
            "StreamkernelFeatureBudgetReached",
            "streamkernel_random_features >= streamkernel_max_features",
            "info",
            "the model of {{ $labels.instance }} has grown to its {{ $value | humanize }} features",
            "a growing model has had its maximum number of random features for an hour",
            "see whether the loss was still falling before: then a larger `max_features` may help",
            hold="1h",
        ),
        Alert(
            "StreamkernelModelDisabled",
            "streamkernel_model_enabled == 0",
            "warning",
            "the model {{ $labels.model }} of {{ $labels.instance }} failed and is disabled",
            "one of several models failed and learns no more",
            "read the log for the reason; fix the model and give it a new name, or remove it from `models`",
        ),
    ]
