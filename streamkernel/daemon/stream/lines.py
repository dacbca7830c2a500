"""The lines the daemon writes: a prediction, and a record it could not use."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from connectors.ports import Position

__all__ = ["dead_letter", "prediction"]


def prediction(
    position: Position,
    label: Any,
    probabilities: Mapping[Any, float] | None,
    target: Any,
    deviation: float | None = None,
) -> dict[str, Any]:
    """Make a line of the predictions.

    Parameters
    ----------
    position
        Where the record stands.
    label
        What the model said.
    probabilities
        Of each class, for classifiers.
    target
        What came, if it is known.
    deviation
        The standard deviation of what the model said, for regressors with a distribution.

    Examples
    --------
    >>> prediction(Position("", 0, 12), "a", {"a": 1.0}, None)
    {'position': {'partition': 0, 'offset': 12}, 'prediction': 'a', 'target': None, 'probabilities': {'a': 1.0}}
    >>> prediction(Position("", 0, 12), 2.0, None, 2.5, 0.75)
    {'position': {'partition': 0, 'offset': 12}, 'prediction': 2.0, 'target': 2.5, 'std': 0.75}

    """
    line = {
        "position": _shown(position),
        "prediction": label,
        "target": target,  # also where it is None: a CSV file has the columns of its first line
    }
    if probabilities is not None:
        line["probabilities"] = probabilities  # labels that are no text become text as JSON has them: true, 3
    if deviation is not None:
        line["std"] = deviation
    return line


def dead_letter(position: Position, reason: str, detail: str, raw: bytes) -> dict[str, Any]:
    """Make a line of the dead letters, with all that is needed to mend the record and send it again.

    Parameters
    ----------
    position
        Where the record stands.
    reason
        A short code, the same as in the metrics.
    detail
        One sentence.
    raw
        The record as it stood in the source: text where it is UTF-8, else base64.

    Examples
    --------
    >>> line = dead_letter(Position("", 0, 12), "encoding", "not UTF-8", b"\\xff")
    >>> line["encoding"], line["raw"]
    ('base64', '/w==')

    """
    try:
        encoding, text = "utf-8", raw.decode()
    except UnicodeDecodeError:
        encoding, text = "base64", base64.b64encode(raw).decode()
    return {"position": _shown(position), "reason": reason, "detail": detail, "encoding": encoding, "raw": text}


def _shown(position: Position) -> dict[str, int]:
    # Without the stream: a file that grows is known by more and more of its first bytes, and a line by none of them.
    return {"partition": position.partition, "offset": position.offset}
