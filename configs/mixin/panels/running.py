"""The rows on how the daemon runs: checkpoints, latency, the process."""

from __future__ import annotations

from configs.mixin.panels.board_row import BoardRow
from configs.mixin.panels.drawing import lines
from configs.mixin.panels.queries import PanelQuery, chosen, increase, quantile, rate
from configs.mixin.settings import AlertBounds

__all__ = ["checkpoints", "latency", "process"]

_EACH = "{{instance}} {{partition}}"


def checkpoints(bounds: AlertBounds) -> BoardRow:
    """Return the row on checkpoints."""
    mean = f"{rate('checkpoint_duration_seconds_sum')} / {rate('checkpoint_duration_seconds_count')}"
    return BoardRow(
        "Checkpoints",
        [
            [
                lines(
                    "Age of the checkpoint",
                    "Since the last one was written; where no record comes, none is written.",
                    PanelQuery(f"time() - {chosen('checkpoint_last_success_timestamp_seconds')}", _EACH),
                    unit="s",
                    thresholds={bounds.checkpoint_seconds: "red"},
                ),
                lines(
                    "Checkpoint size",
                    "Size of the last checkpoint.",
                    PanelQuery(chosen("checkpoint_size_bytes"), _EACH),
                    unit="bytes",
                ),
                lines(
                    "Checkpoint duration",
                    "Seconds a checkpoint takes: mean, and 99 of 100.",
                    PanelQuery(mean, f"mean {_EACH}"),
                    PanelQuery(quantile(0.99, "checkpoint_duration_seconds"), "99% {{instance}}"),
                    unit="s",
                ),
                lines(
                    "Checkpoint failures",
                    "Checkpoints that could not be written; the ones before them stay.",
                    PanelQuery(increase("checkpoint_failures_total"), _EACH),
                    bounds=(0, None),
                ),
            ]
        ],
    )


def latency(bounds: AlertBounds) -> BoardRow:
    """Return the row on how long records take."""
    halves = [(0.5, "median"), (0.99, "99%")]
    return BoardRow(
        "Latency",
        [
            [
                lines(
                    "Seconds to learn a record",
                    "Of our estimators, prediction included.",
                    *(
                        PanelQuery(quantile(q, "learn_duration_seconds"), f"{name} {{{{instance}}}}")
                        for q, name in halves
                    ),
                    unit="s",
                ),
                lines(
                    "Seconds to predict a record",
                    "Sampled.",
                    *(
                        PanelQuery(quantile(q, "predict_duration_seconds"), f"{name} {{{{instance}}}}")
                        for q, name in halves
                    ),
                    unit="s",
                ),
                lines(
                    "Slowest record",
                    "Of the last one to two minutes, from its reading until it is learned.",
                    PanelQuery(chosen("slowest_record_seconds"), _EACH),
                    unit="s",
                ),
                lines(
                    "Output latency",
                    "Time from the reading of a record until others can read its line, 99 of 100 lines; "
                    "flush_seconds bounds it.",
                    PanelQuery(
                        quantile(0.99, "output_latency_seconds", "le, output, instance"), "{{output}} {{instance}}"
                    ),
                    unit="s",
                    thresholds={bounds.output_latency_seconds: "red"},
                ),
            ]
        ],
    )


def process() -> BoardRow:
    """Return the row on what the process takes of the machine."""
    return BoardRow(
        "Process",
        [
            [
                lines(
                    "Processors",
                    "Processor seconds a second; 1 is one core, which is what learning can take.",
                    PanelQuery(rate("process_cpu_seconds_total"), _EACH),
                    bounds=(0, None),
                ),
                lines(
                    "Memory",
                    "What the process takes, and its address space.",
                    PanelQuery(chosen("process_resident_memory_bytes"), f"resident {_EACH}"),
                    PanelQuery(chosen("process_virtual_memory_bytes"), f"virtual {_EACH}"),
                    unit="bytes",
                ),
                lines(
                    "Open files",
                    "File descriptors, and how many there may be.",
                    PanelQuery(chosen("process_open_fds"), f"open {_EACH}"),
                    PanelQuery(chosen("process_max_fds"), f"limit {_EACH}"),
                ),
                lines(
                    "Time since the start",
                    "Of the process; it falls to 0 at a restart.",
                    PanelQuery(f"time() - {chosen('process_start_time_seconds')}", _EACH),
                    unit="s",
                ),
                lines(
                    "Versions",
                    "Versions the daemon runs with.",
                    PanelQuery(chosen("build_info"), "{{version}}, River {{river}}, Python {{python}} {{instance}}"),
                ),
            ]
        ],
        folded=True,
    )
