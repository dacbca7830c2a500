"""Panels as the boards draw them: numbers, lines and bars, with the data source that is chosen."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models

from configs.mixin.panels.queries import PanelQuery

__all__ = ["DATA_SOURCE", "PanelBuilder", "bars", "lines", "number"]

DATA_SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_STATUS_PAGE = "http://${__field.labels.instance}/"

PanelBuilder = Builder[models.Panel]


def _targets(queries: Sequence[PanelQuery], instant: bool) -> list[prometheus.Dataquery]:
    targets = []
    for letter, query in zip(string.ascii_uppercase, queries, strict=False):
        target = prometheus.Dataquery().ref_id(letter).datasource(DATA_SOURCE).expr(query.expr)
        target.legend_format(query.legend)
        targets.append(target.instant() if instant else target.range())
    return targets


def _thresholds(steps: Mapping[float, str]) -> builders.ThresholdsConfig:
    """Return colors by the value from which each holds; green below all."""
    above = [models.Threshold(value=value, color=color) for value, color in steps.items()]
    first = models.Threshold(value=None, color="green")
    return builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps([first, *above])


def number(
    title: str,
    text: str,
    query: PanelQuery,
    unit: str = "short",
    thresholds: Mapping[float, str] | None = None,
    status_page: bool = False,
) -> PanelBuilder:
    """Draw the last value of each series as a number, colored by thresholds; a click may lead to its status page."""
    link = (
        builders.DashboardLink("Status page").type(models.DashboardLinkType.LINK).url(_STATUS_PAGE).target_blank(True)
    )
    return (
        stat.Panel()
        .title(title)
        .description(text)
        .datasource(DATA_SOURCE)
        .targets([*_targets([query], instant=True)])
        .unit(unit)
        .thresholds(_thresholds(thresholds or {}))
        .color_scheme(builders.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .data_links([link] if status_page else [])
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .color_mode(common_models.BigValueColorMode.VALUE)
        .graph_mode(common_models.BigValueGraphMode.NONE)
    )


def lines(
    title: str,
    text: str,
    *queries: PanelQuery,
    unit: str = "short",
    bounds: tuple[float | None, float | None] = (None, None),
    thresholds: Mapping[float, str] | None = None,
    stacked: bool = False,
) -> PanelBuilder:
    """Draw the series over time; thresholds become dashed lines."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(text)
        .datasource(DATA_SOURCE)
        .targets([*_targets(queries, instant=False)])
        .unit(unit)
        .color_scheme(builders.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC))
        .line_width(2)
        .fill_opacity(30 if stacked else 0)
        .show_points(common_models.VisibilityMode.AUTO)
        .span_nulls(False)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(common_models.LegendDisplayMode.LIST)
            .placement(common_models.LegendPlacement.BOTTOM)
            .calcs([])
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_models.TooltipDisplayMode.MULTI)
            .sort(common_models.SortOrder.DESCENDING)
        )
    )
    least, most = bounds
    if least is not None:
        panel.min(least)
    if most is not None:
        panel.max(most)
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL).group("A"))
    if thresholds:
        style = common.GraphThresholdsStyleConfig().mode(common_models.GraphThresholdsStyleMode.DASHED)
        panel.thresholds(_thresholds(thresholds)).thresholds_style(style)
    return panel


def bars(title: str, text: str, query: PanelQuery, unit: str = "short") -> PanelBuilder:
    """Draw the last value of each series as a bar."""
    return (
        bargauge.Panel()
        .title(title)
        .description(text)
        .datasource(DATA_SOURCE)
        .targets([*_targets([query], instant=True)])
        .unit(unit)
        .min(0)
        .color_scheme(builders.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC))
        .orientation(common_models.VizOrientation.HORIZONTAL)
        .display_mode(common_models.BarGaugeDisplayMode.GRADIENT)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
    )
