"""The rows on the stream: its records, its labels, its topics."""

from __future__ import annotations

from configs.mixin.panels.board_row import BoardRow
from configs.mixin.panels.drawing import lines
from configs.mixin.panels.queries import PanelQuery, chosen, quantile, rate, total_rate
from configs.mixin.settings import AlertBounds

__all__ = ["late_labels", "stream_health", "topics"]


def _by_outcome(prefix: str, *outcomes: tuple[str, str]) -> list[PanelQuery]:
    return [PanelQuery(total_rate(f"{prefix}{name}_total"), f"{legend} {{{{instance}}}}") for name, legend in outcomes]


def stream_health(bounds: AlertBounds) -> BoardRow:
    """Return the row on the records and on what the loop does."""
    outcomes = lines(
        "Records per second by outcome",
        "Consumed is the sum of learned, unlabeled, skipped and dead.",
        *_by_outcome(
            "records_",
            ("consumed", "consumed"),
            ("predicted", "predicted"),
            ("learned", "learned"),
            ("unlabeled", "unlabeled"),
            ("skipped", "skipped"),
        ),
        unit="cps",
    )
    dead = lines(
        "Dead letters per second",
        "By reason; see the dead letters for the records.",
        PanelQuery(total_rate("records_dead_lettered_total", "reason, instance"), "{{reason}} {{instance}}"),
        unit="cps",
    )
    ignored = lines(
        "Ignored per second",
        "Inputs and labels past the model's limits, targets beyond 1e100, and predictions and losses that are no "
        "finite "
        "numbers.",
        PanelQuery(total_rate("ignored_inputs_total"), "inputs {{instance}}"),
        PanelQuery(total_rate("ignored_labels_total"), "not learned: class {{instance}}"),
        PanelQuery(total_rate("clipped_targets_total"), "clipped targets {{instance}}"),
        PanelQuery(total_rate("not_finite_total", "value, instance"), "not finite: {{value}} {{instance}}"),
        unit="cps",
    )
    activity = lines(
        "Time of the loop by activity",
        "Shares of the time that the loop waits for records, predicts and learns, writes lines or waits for an "
        "output, and "
        "writes checkpoints.",
        PanelQuery(rate("loop_seconds_total"), "{{activity}} {{instance}} {{partition}}"),
        unit="percentunit",
        stacked=True,
    )
    silence = lines(
        "Age of the last record",
        "How long the source has been silent.",
        PanelQuery(f"time() - {chosen('last_record_timestamp_seconds')}", "{{instance}} {{partition}}"),
        unit="s",
        thresholds={bounds.silent_seconds: "red"},
    )
    figures = lines(
        "Age of these figures",
        "Since the loop published what is shown here: it grows while one chunk of records, or a refit, takes long.",
        PanelQuery(f"time() - {chosen('snapshot_timestamp_seconds')}", "{{instance}} {{partition}}"),
        unit="s",
        thresholds={bounds.stuck_seconds: "red"},
    )
    return BoardRow("Stream health", [[outcomes, dead, ignored], [activity, silence, figures]])


def topics() -> BoardRow:
    """Return the row on the topics of Kafka and on the members of a group."""
    lag = lines(
        "Lag by topic and partition",
        "Records still to come: it grows while they come faster than they are learned, or while none are. Files "
        "do not say.",
        PanelQuery(chosen("consumer_lag_records"), "{{topic}} {{partition}} {{instance}}"),
    )
    total = lines(
        "Lag of each instance",
        "The sum over its topics and partitions.",
        PanelQuery(chosen("instance:streamkernel_consumer_lag_records:sum"), "{{instance}}"),
    )
    held = lines(
        "Partitions of each member",
        "Of a group: the sum over its members is the number of partitions of the topic.",
        PanelQuery(chosen("group_partitions"), "{{instance}}"),
        stacked=True,
    )
    return BoardRow("Kafka", [[lag, total, held]])


def late_labels() -> BoardRow:
    """Return the row on late labels."""
    limit = chosen("labels_max_pending")
    by_bytes = f"{limit} * {chosen('labels_pending_bytes')} / {chosen('labels_max_pending_bytes')}"
    waiting = lines(
        "Waiting for late labels",
        "Records that wait for their label, labels that wait for their record, and the most of either.",
        PanelQuery(chosen("labels_pending"), "records {{instance}} {{partition}}"),
        PanelQuery(chosen("labels_waiting"), "labels {{instance}} {{partition}}"),
        PanelQuery(limit, "limit {{instance}} {{partition}}"),
        PanelQuery(by_bytes, "records, by their bytes {{instance}} {{partition}}"),
    )
    outcomes = lines(
        "Late labels per second by outcome",
        "Consumed is the sum of matched, unmatched, doubled, skipped, dead letters and those that wait; expired "
        "are records.",
        *_by_outcome(
            "labels_",
            ("consumed", "consumed"),
            ("matched", "matched"),
            ("early", "early"),
            ("unmatched", "unmatched"),
            ("doubled", "doubled"),
            ("skipped", "skipped"),
            ("expired", "expired"),
        ),
        PanelQuery(total_rate("labels_dead_lettered_total", "reason"), "dead letter: {{reason}}"),
        PanelQuery(total_rate("record_keys_refused_total", "reason"), "record with a {{reason}} key"),
        unit="cps",
    )
    delay = lines(
        "Delay of labels",
        "How long records waited for their labels, in seconds in which the daemon ran.",
        PanelQuery(quantile(0.5, "label_delay_seconds"), "median {{instance}}"),
        PanelQuery(quantile(0.9, "label_delay_seconds"), "90% {{instance}}"),
        PanelQuery(quantile(0.99, "label_delay_seconds"), "99% {{instance}}"),
        unit="s",
    )
    return BoardRow("Late labels", [[waiting, outcomes, delay]], folded=True)
