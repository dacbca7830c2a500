"""Results and lines record by record, as the daemon makes them in columns."""

import math
from typing import Any

from streamkernel.connectors.pass_through import MessageLine


def most_probable(dicts: list[dict[Any, float]]) -> list[Any]:
    """The label of the largest probability, the first of equals; None where there is none."""
    return [max(one, key=one.__getitem__) if one else None for one in dicts]


def lines_of(records: Any, result: Any, rows: Any, model: str, others: Any, checkpoint: Any) -> list[dict[str, Any]]:
    """A line of each record: see `streamkernel.daemon.stream.lines.predictions`."""
    lines = []
    for record, row in zip(records, range(len(records)) if rows is None else rows, strict=True):
        line: dict[str, Any] = {
            "position": {"partition": record.position.partition, "offset": record.position.offset},
            "prediction": result.predictions[row],
            "target": record.y,
        }
        if result.probabilities is not None:
            line["probabilities"] = result.probabilities[row]
        if result.deviations is not None:
            line["std"] = _known(result.deviations[row])
        if model:
            line["model"] = model
        if others:
            line["models"] = {name: _entry(one, row) for name, one in others.items()}
        if record.passed is not None:
            line |= record.passed.columns
            line = line if record.passed.message is None else MessageLine(line, record.passed.message)
        if checkpoint is not None:
            line["checkpoint"] = checkpoint
        lines.append(line)
    return lines


def _entry(result: Any, row: int) -> dict[str, Any]:
    entry = {"prediction": None if result is None else result.predictions[row]}
    if result is not None and result.probabilities and result.probabilities[row]:
        entry["probabilities"] = result.probabilities[row]
    if result is not None and result.deviations is not None and entry["prediction"] is not None:
        entry["std"] = _known(result.deviations[row])
    return entry


def _known(deviation: float) -> float | None:
    return None if math.isnan(deviation) else float(deviation)
