"""The lines the daemon writes: a prediction, and a record it could not use."""

from __future__ import annotations

import base64
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from streamkernel.connectors.encode import ColumnLines, to_json
from streamkernel.connectors.pass_through import Passed, SourceMessage
from streamkernel.connectors.ports import Offsets, Position, Record, RecordColumns
from streamkernel.daemon.stream.results import taken
from streamkernel.estimators.base import AdvanceResult

__all__ = ["LongColumns", "dead_letter", "predictions", "shortened"]

_log = logging.getLogger(__name__)


def predictions(
    records: Sequence[Record],
    result: AdvanceResult,
    rows: Sequence[int] | None = None,
    model: str = "",
    others: Mapping[str, AdvanceResult | None] | None = None,
    checkpoint: int | None = None,
) -> Sequence[Mapping[str, Any]]:
    """Make the lines of the predictions.

    Parameters
    ----------
    records
        Records with a prediction.
    result
        The predictions.
    rows
        The row of each record in the result; None: all rows, in order.
    model
        The name of the model, which each line has; empty: none has it.
    others
        By its name, the predictions of each other model, None if it is disabled; nothing: no line has them.
    checkpoint
        The number of the checkpoint that predicts, which each line has; None: none has it.

    Returns
    -------
    lines
        One a record: its position, its prediction, and its target, if it is known. Classifiers add the probability of
        each class, regressors with a distribution the standard deviation. The name of the model, the predictions of
        the others, pass-through columns and the number of the checkpoint follow.

    Examples
    --------
    >>> here, there = Position("", 0, 12), Position("", 0, 20)
    >>> predictions([Record({}, None, here, there, b"")], AdvanceResult(["a"], [{"a": 1.0}], np.zeros(1)))[0]
    {'position': {'partition': 0, 'offset': 12}, 'prediction': 'a', 'target': None, 'probabilities': {'a': 1.0}}
    >>> predictions([Record({}, 2.5, here, there, b"")], AdvanceResult([2.0], None, np.zeros(1), np.array([0.75])))[0]
    {'position': {'partition': 0, 'offset': 12}, 'prediction': 2.0, 'target': 2.5, 'std': 0.75}

    """
    own = result if rows is None else taken(result, rows)
    if isinstance(records, RecordColumns):
        starts, targets, passed = records.starts, records.targets, records.passed or ()
    else:
        starts, targets = [record.position for record in records], [record.y for record in records]
        passed = [record.passed for record in records]
    if isinstance(starts, Offsets):
        position: dict[str, Any] = {"partition": starts.partition, "offset": starts.offsets}
    else:
        position = {"partition": [place.partition for place in starts], "offset": [place.offset for place in starts]}
    columns: dict[str, Any] = {
        "position": position,
        "prediction": own.predictions if own.numbers is None else own.numbers,
        # The target also if it is None: a CSV file has the columns of its first line.
        "target": targets,
    }
    if (given := own.distributions) is not None and given.complete:
        columns["probabilities"] = dict(zip(given.labels, given.table.T.copy(), strict=True))
    elif own.probabilities is not None:
        # Labels that are not text become text as JSON has them: true, 3.
        columns["probabilities"] = own.probabilities
    if own.deviations is not None:
        columns["std"] = own.deviations
        if np.isnan(own.deviations).any():
            columns["std"] = list(map(_known, own.deviations.tolist()))
    if model:
        columns["model"] = model
    if others:
        places = range(len(records)) if rows is None else rows
        entries = {name: _entries(one, places) for name, one in others.items()}
        columns["models"] = [dict(zip(entries, row, strict=True)) for row in zip(*entries.values(), strict=True)]
    messages = None
    if passed and passed[0] is not None:  # of all or of none
        known = cast("Sequence[Passed]", passed)
        columns |= {name: [one.columns[name] for one in known] for name in known[0].columns}
        messages = [one.message for one in known] if known[0].message is not None else None
    if checkpoint is not None:
        columns["checkpoint"] = checkpoint
    return ColumnLines(len(records), columns, cast("list[SourceMessage] | None", messages))


def _entries(result: AdvanceResult | None, places: Sequence[int]) -> list[dict[str, Any]]:
    """Return the predictions of a challenger at some rows; null where it has none."""
    if result is None:
        return [{"prediction": None} for _ in places]
    own, entries = taken(result, places), []
    for place, prediction in enumerate(own.predictions):
        entry: dict[str, Any] = {"prediction": prediction}
        if own.probabilities is not None and own.probabilities[place]:
            entry["probabilities"] = own.probabilities[place]
        if own.deviations is not None and prediction is not None:
            entry["std"] = _known(float(own.deviations[place]))
        entries.append(entry)
    return entries


def _known(deviation: float) -> float | None:
    """A deviation; None before the first target, where nothing is known."""
    return None if math.isnan(deviation) else deviation


def dead_letter(
    position: Position, reason: str, detail: str, raw: bytes, source: str | None = None, written_in: str = "utf-8"
) -> dict[str, Any]:
    """Make a line of the dead letters, with all that is needed to mend the record and send it again.

    Parameters
    ----------
    position
        Where the record is.
    reason
        A short code, the same as in the metrics.
    detail
        One sentence.
    raw
        The record as it stood in the source: text where it is UTF-8 or in the encoding of its source, else base64.
    source
        Which source the position counts in, for a late label ``"labels"``; None: that of the records.
    written_in
        The encoding of its source.

    Examples
    --------
    >>> line = dead_letter(Position("", 0, 12), "encoding", "not UTF-8", b"\\xff")
    >>> line["encoding"], line["raw"]
    ('base64', '/w==')
    >>> line = dead_letter(Position("", 0, 12), "csv_width", "too few", b"wei\\xdf", written_in="latin-1")
    >>> line["encoding"], line["raw"]
    ('latin-1', 'weiß')

    """
    encoding, text = _as_text(raw, "utf-8") or _as_text(raw, written_in) or ("base64", base64.b64encode(raw).decode())
    # Without the stream: a file that grows is known by more and more of its first bytes, and a line by none of them.
    where: dict[str, Any] = {"partition": position.partition, "offset": position.offset}
    if source is not None:
        where["source"] = source
    return {"position": where, "reason": reason, "detail": detail, "encoding": encoding, "raw": text}


def _as_text(raw: bytes, encoding: str) -> tuple[str, str] | None:
    """Return an encoding and the text of bytes in it, from which they can be had back; None where there is none."""
    try:
        text = raw.decode(encoding)
        return (encoding, text) if text.encode(encoding) == raw else None
    except UnicodeError:
        return None


def shortened(letter: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Cut the raw record of a dead letter so that the line fits into an output that takes no longer ones.

    Parameters
    ----------
    letter
        What `dead_letter` made.
    most
        The longest line, in bytes.

    Returns
    -------
    line
        Its detail says how much of the record is left, and `cut_at` how many bytes.

    Examples
    --------
    >>> letter = dead_letter(Position("", 0, 12), "too_long", "too long", 5000 * b"x")
    >>> line = shortened(letter, 1000)
    >>> len(to_json(line)) <= 1000, line["detail"]
    (True, 'too long (raw holds its first 624 characters of 5,000)')

    """
    raw, kept = letter["raw"], len(letter["raw"])
    while True:
        detail = f"{letter['detail']} (raw holds its first {kept:,} characters of {len(raw):,})"
        line = {**letter, "detail": detail, "raw": raw[:kept], "cut_at": _n_bytes(raw[:kept], letter["encoding"])}
        if kept == 0 or len(to_json(line)) <= most:
            return line
        kept = kept // 8 * 4  # what is left of base64 can be decoded


def _n_bytes(text: str, encoding: str) -> int:
    return len(text) // 4 * 3 - text.count("=") if encoding == "base64" else len(text.encode(encoding))


class LongColumns:
    """Shortens lines: of the columns that pass through, the longest become null until the line fits.

    A record that is as long as it may be must not stop the daemon by what passes of it.

    Parameters
    ----------
    names
        Those columns.

    Examples
    --------
    >>> shorten = LongColumns(["id", "text"])
    >>> shorten({"prediction": 1, "id": 7, "text": 900 * "x"}, 100)
    {'prediction': 1, 'id': 7, 'text': None}

    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._told = False

    def __call__(self, line: Mapping[str, Any], most: int) -> Mapping[str, Any]:
        """Return a line that takes at most `most` bytes as JSON, where that can be reached."""
        fitting = dict(line)
        for name in sorted(self._names, key=lambda name: -len(to_json(line.get(name)))):
            if len(to_json(fitting)) <= most:
                break
            fitting[name] = None
            if not self._told:
                self._told = True
                _log.warning("a line is too long for the topic: the column %s is null in such lines", name)
        return fitting
