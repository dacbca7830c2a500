"""The row at the top: is all well?"""

from __future__ import annotations

from configs.mixin.panels.board_row import BoardRow
from configs.mixin.panels.drawing import number
from configs.mixin.panels.queries import PanelQuery, chosen, total_rate
from configs.mixin.settings import AlertBounds

__all__ = ["overview"]

_ALERTS = 'ALERTS{alertname=~"Streamkernel.*", alertstate="firing", job=~"$job", instance=~"$instance"}'


def overview(bounds: AlertBounds) -> BoardRow:
    """Return the row, colored by the bounds of the alerts."""
    dead = "instance:streamkernel_records_dead_lettered:ratio_rate15m"
    age = f"time() - {chosen('checkpoint_last_success_timestamp_seconds')}"
    panels = [
        number(
            "Alerts that fire",
            "Of these rules, for the chosen instances; each leads to its runbook.",
            PanelQuery(f"count({_ALERTS}) or vector(0)", ""),
            thresholds={1: "red"},
        ),
        number(
            "Records since the first start",
            "lifetime_records: restarts do not reset it.",
            PanelQuery(chosen("lifetime_records"), "{{instance}} {{partition}}"),
            unit="locale",
            status_page=True,
        ),
        number(
            "Records per second",
            "Taken from the source.",
            PanelQuery(total_rate("records_consumed_total"), "{{instance}}"),
            unit="cps",
            status_page=True,
        ),
        number(
            "Dead letters",
            "Their share of the records of a quarter of an hour.",
            PanelQuery(chosen(dead), "{{instance}} {{partition}}"),
            unit="percentunit",
            thresholds={bounds.dead_letter_share: "orange", 0.5: "red"},
            status_page=True,
        ),
        number(
            "Age of the last checkpoint",
            "What a kill would cost at most.",
            PanelQuery(age, "{{instance}} {{partition}}"),
            unit="s",
            thresholds={bounds.checkpoint_seconds: "red"},
            status_page=True,
        ),
        number(
            "Random features",
            "Frequencies the model has drawn so far.",
            PanelQuery(chosen("random_features"), "{{instance}} {{partition}}"),
            unit="locale",
            status_page=True,
        ),
    ]
    return BoardRow("Overview", [panels], height=5)
