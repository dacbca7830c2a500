"""The two boards: of a daemon that learns, and of the service that predicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from configs.mixin.layout import laid_out
from configs.mixin.panels import learning, overview, running, service, special, stream
from configs.mixin.panels.board_row import BoardRow
from configs.mixin.panels.drawing import DATA_SOURCE
from configs.mixin.panels.queries import chosen
from configs.mixin.settings import MixinSettings

__all__ = ["board_of_the_daemon", "board_of_the_service"]

_EVENTS = {"Drift": ("drift_events_total", "purple"), "Restart": ("process_start_time_seconds", "orange")}


def board_of_the_daemon(settings: MixinSettings) -> dict[str, Any]:
    """Return the board of `streamkernel run`."""
    bounds = settings.bounds
    rows = [
        overview.overview(bounds),
        learning.learning(bounds),
        learning.growth(),
        stream.stream_health(bounds),
        running.checkpoints(bounds),
        running.latency(bounds),
        stream.topics(),
        stream.late_labels(),
        special.several_models(),
        special.refits(bounds),
        special.detectors(bounds),
        running.process(),
    ]
    text = "A model that learns from a stream: its loss, its growth or its experts, its records and its checkpoints."
    return _board("streamkernel", text, rows, "streamkernel_build_info", ["Drift", "Restart"], settings)


def board_of_the_service(settings: MixinSettings) -> dict[str, Any]:
    """Return the board of `streamkernel serve`."""
    text = "Predictions over HTTP: requests, the model that answers, and the journals of what it is to learn."
    rows = service.service_rows(settings.bounds)
    return _board("streamkernel serve", text, rows, "streamkernel_http_requests_in_flight", ["Restart"], settings)


def _board(
    title: str, text: str, rows: Sequence[BoardRow], told_by: str, events: Sequence[str], settings: MixinSettings
) -> dict[str, Any]:
    """Return a board without a uid; its jobs and instances are those that have the metric `told_by`."""
    board = (
        builders.Dashboard(title)
        .description(text)
        .tags(["streamkernel"])
        .editable()
        .time("now-1h", "now")
        .refresh("10s")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(builders.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_labels("job", "Job", f"label_values({told_by}, job)"))
        .with_variable(_labels("instance", "Instance", f'label_values({told_by}{{job=~"$job"}}, instance)'))
        .link(
            builders.DashboardLink("Runbooks")
            .type(models.DashboardLinkType.LINK)
            .icon("doc")
            .tooltip("What each alert means, and what to do")
            .url(f"{settings.runbooks}/index.html")
            .target_blank(True)
        )
    )
    for event in events:
        metric, color = _EVENTS[event]
        happened = f"changes({chosen(metric)}[$__rate_interval]) > 0"
        query = builders.AnnotationQuery().name(event).datasource(DATA_SOURCE).enable(True).icon_color(color)
        board.annotation(query.expr(happened))
    built = board.build()
    built.panels = laid_out(rows)
    return _as_grafana_saves(json.loads(json.dumps(built, cls=JSONEncoder)))


def _labels(name: str, label: str, query: str) -> builders.QueryVariable:
    """Return a variable of label values, of which all are chosen at first."""
    return (
        builders.QueryVariable(name)
        .label(label)
        .datasource(DATA_SOURCE)
        .query({"query": query, "refId": name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(text="All", value="$__all"))
    )


def _as_grafana_saves(board: dict[str, Any]) -> dict[str, Any]:
    """Mend what the SDK writes otherwise.

    Every variable gets the fields of one of intervals; annotations lack what Prometheus's data source shows of them.
    """
    for variable in board["templating"]["list"]:
        for name in ("auto", "auto_min", "auto_count"):
            variable.pop(name, None)
    for annotation in board["annotations"]["list"]:
        annotation |= {"titleFormat": annotation["name"], "textFormat": "{{instance}}", "tagKeys": "job,partition"}
    return board
