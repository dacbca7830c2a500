"""The rows on `streamkernel serve`: requests, the model that answers, journals."""

from __future__ import annotations

from configs.mixin.panels.board_row import BoardRow
from configs.mixin.panels.drawing import lines, number
from configs.mixin.panels.queries import PanelQuery, chosen, increase, quantile, rate, total_rate
from configs.mixin.settings import AlertBounds

__all__ = ["service_rows"]


def service_rows(bounds: AlertBounds) -> list[BoardRow]:
    """Return all rows of the board of the service."""
    return [_overview(bounds), _requests(bounds), _model(), _journals(bounds)]


def _overview(bounds: AlertBounds) -> BoardRow:
    age = f"time() - {chosen('model_checkpoint_timestamp_seconds')}"
    panels = [
        number(
            "Requests per second",
            "Answered, whatever the answer.",
            PanelQuery(total_rate("http_requests_total"), "{{instance}}"),
            unit="reqps",
        ),
        number(
            "99% of requests within",
            "Seconds from a whole request to its answer.",
            PanelQuery(quantile(0.99, "http_request_duration_seconds"), "{{instance}}"),
            unit="s",
            thresholds={bounds.http_seconds: "orange"},
        ),
        number(
            "Age of the model",
            "Since its checkpoint was written.",
            PanelQuery(age, "{{instance}}"),
            unit="s",
            thresholds={bounds.model_age_seconds: "orange"},
        ),
        number(
            "Records it had learned",
            "By the run that wrote the checkpoint.",
            PanelQuery(chosen("model_checkpoint_records"), "{{instance}}"),
            unit="locale",
        ),
    ]
    return BoardRow("Overview", [panels], height=5)


def _requests(bounds: AlertBounds) -> BoardRow:
    answers = lines(
        "Requests by answer",
        "503 is not now: no model yet, or a journal that takes nothing.",
        PanelQuery(total_rate("http_requests_total", "path, status"), "{{path}} {{status}}"),
        unit="reqps",
    )
    seconds = lines(
        "Seconds a request",
        "Half of them, and 99 in a hundred, are answered within.",
        PanelQuery(quantile(0.5, "http_request_duration_seconds", "le, path"), "{{path}} 50%"),
        PanelQuery(quantile(0.99, "http_request_duration_seconds", "le, path"), "{{path}} 99%"),
        unit="s",
        thresholds={bounds.http_seconds: "red"},
    )
    open_now = lines(
        "Requests in flight",
        "Being answered at this moment.",
        PanelQuery(chosen("http_requests_in_flight"), "{{instance}}"),
    )
    return BoardRow("Requests", [[answers, seconds, open_now]])


def _model() -> BoardRow:
    records = lines(
        "Records by result",
        "ok, or why they could not be used.",
        PanelQuery(total_rate("http_records_total", "result"), "{{result}}"),
        unit="cps",
    )
    checkpoint = lines(
        "Checkpoint that answers",
        "It rises with each that is taken over.",
        PanelQuery(chosen("model_checkpoint"), "{{instance}}"),
    )
    reloads = lines(
        "Checkpoints taken over, and not",
        "A failure: the newest one cannot be used, the one before answers.",
        PanelQuery(f"sum by (instance) ({increase('model_reloads_total')})", "taken over {{instance}}"),
        PanelQuery(f"sum by (instance) ({increase('model_reload_failures_total')})", "failed {{instance}}"),
        bounds=(0, None),
    )
    return BoardRow("The model", [[records, checkpoint, reloads]])


def _journals(bounds: AlertBounds) -> BoardRow:
    full = lines(
        "Journals",
        "How full: at 100% requests are refused until the run that learns has saved a checkpoint.",
        PanelQuery(f"{chosen('journal_bytes')} / {chosen('journal_max_bytes')}", "{{journal}} {{instance}}"),
        unit="percentunit",
        bounds=(0, 1),
        thresholds={bounds.journal_share: "red"},
    )
    records = lines(
        "Records for journals",
        "Taken, repeats of those, and requests that were refused.",
        PanelQuery(total_rate("journal_records_total", "journal, result"), "{{journal}} {{result}}"),
        PanelQuery(total_rate("journal_refused_total", "journal"), "{{journal}} refused"),
        unit="cps",
    )
    groups = lines(
        "Groups made durable",
        "Each is one write and one fsync for all requests that wait.",
        PanelQuery(rate("journal_groups_total"), "{{journal}} {{instance}}"),
        unit="cps",
    )
    return BoardRow("Journals", [[full, records, groups]])
