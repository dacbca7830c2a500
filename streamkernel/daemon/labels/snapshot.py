"""The join in a checkpoint: plain values in the header, and what waits as one run of bytes after the model.

The bytes are lines of JSON: a head, then the records that wait. Nothing in them is executed, and all of it is checked
before it is used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import orjson

from streamkernel.connectors.ports import Label, Position
from streamkernel.daemon.base.counts import LabelCounts
from streamkernel.daemon.base.errors import CheckpointError, OtherFormatError
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.labels.decision import EarlyLabel, PendingEntry
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.pending_record import checked
from streamkernel.daemon.labels.sizes import size_of_record
from streamkernel.state import excerpt

__all__ = ["dump", "restore"]

_VERSION = 5


def dump(join: LabelJoin) -> tuple[dict[str, Any], bytes]:
    """Write the state of a join as plain values for the header of a checkpoint, and bytes for its payload.

    Raises
    ------
    CheckpointError
        It holds what `restore` would refuse.

    """
    try:
        return _dump(join)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise CheckpointError(f"the late labels cannot be written to a checkpoint: {error!s:.200}") from None


def _dump(join: LabelJoin) -> tuple[dict[str, Any], bytes]:
    records = [entry.data for _, entry in join.pending if entry.data is not None]
    _balance(join, len(records))
    for row in records:
        if row.startswith(b" "):  # it has a value that JSON may not have
            checked(row)
    streams: dict[str, int] = {}
    waiting = [
        [
            key,
            _label(early.y),
            _time(early.arrived, join.now),
            streams.setdefault(early.position.stream, len(streams)),
            *early.position[1:3],
        ]
        for key, early in join.waiting
    ]
    settled = list(join.settled)
    head = {
        "version": _VERSION,
        "records": len(records),
        "waiting": waiting,
        "streams": list(streams),
        "settled": [key for key, _ in settled],
        "labeled": "".join("1" if labeled else "0" for _, labeled in settled),
        "known": None if join.known is None else [_label(y) for y in join.known],
    }
    header = {
        "account": join.counts.to_json(),
        "pending": len(records),
        "waiting": len(waiting),
        "positions": [position.to_json() for position in join.positions.values()],
        "recent_dead": join.recent_dead,
        "label_next": join.label_next,
        "clock": _time(join.read_clock(), math.inf),
        "moments": list(_moments(join.moments)),
    }
    return header, b"\n".join([_to_json(head), *records])


def restore(join: LabelJoin, header: Mapping[str, Any], blob: bytes) -> None:
    """Restore a new join from what `dump` wrote.

    Raises
    ------
    OtherFormatError
        It has another version.
    CheckpointError
        It is damaged, or something that `dump` does not write.

    """
    try:
        _restore_header(join, header)
        _restore_blob(join, blob)
        _balance(join, header["pending"])
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise CheckpointError(f"the late labels of the checkpoint cannot be restored: {error!s:.200}") from None
    join.undo.forget()


def _restore_header(join: LabelJoin, header: Mapping[str, Any]) -> None:
    join.counts = LabelCounts(**{field.name: _whole(header["account"][field.name]) for field in fields(LabelCounts)})
    for stream, partition, offset, *known in header["positions"]:
        join.positions[_whole(partition)] = Position(_text(stream), partition, _whole(offset), *known)
    join.recent_dead = [_whole(number) for number in header["recent_dead"]]
    if type(header["label_next"]) is not bool:
        raise ValueError("label_next is not a boolean")
    join.label_next = header["label_next"]
    join.set_clock(_time(header["clock"], math.inf))
    join.moments = _moments(header["moments"])


def _restore_blob(join: LabelJoin, blob: bytes) -> None:
    lines = blob.split(b"\n")
    head = json.loads(lines[0])
    version = head["version"]
    if _whole(version) != _VERSION:
        way = "update streamkernel" if version > _VERSION else "start over with --fresh"
        raise OtherFormatError(
            f"its late labels have version {excerpt(version)}, this streamkernel reads {_VERSION}: {way}"
        )
    if head["known"] is not None:
        join.known = tuple(_label(y) for y in head["known"])
    now = join.now
    rows = lines[1:]
    if len(rows) != _whole(head["records"]):
        raise ValueError(f"{len(rows)} lines are not the records there are")
    before = 0.0
    for row in rows:
        pending = checked(row)
        before = _time(pending.arrived, now, before)
        _refuse_double(join, pending.key)
        size = size_of_record(pending.key, pending.x, pending.lags)
        join.pending.put(pending.key, PendingEntry(before, size, data=row, lags=pending.lags))
    before = 0.0
    for key, y, arrived, stream, partition, offset in head["waiting"]:
        before = _time(arrived, now, before)
        _refuse_double(join, _text(key))
        position = Position(_text(head["streams"][_whole(stream)]), _whole(partition), _whole(offset))
        join.waiting.put(key, EarlyLabel(_label(y), before, position))
    if set(head["labeled"]) - {"0", "1"}:
        raise ValueError("a key does not say whether its label came")
    for key, labeled in zip(head["settled"], head["labeled"], strict=True):
        _refuse_double(join, _text(key))
        join.settled.put(key, labeled == "1")


def _balance(join: LabelJoin, pending: Any) -> None:
    if len(join.pending) != pending or not join.counts.balances(len(join.pending), len(join.waiting)):
        raise ValueError("the account does not add up")


def _refuse_double(join: LabelJoin, key: str) -> None:
    if key in join.pending or key in join.waiting or key in join.settled:
        raise ValueError(f"the key {key!r:.40} is there twice")


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} is not a count")
    return value


def _text(value: Any) -> str:
    if type(value) is not str or not value:
        raise ValueError(f"{value!r:.40} is not text")
    return value


def _label(value: Any) -> Label:
    if type(value) not in (str, int, float, bool) or (type(value) is float and not math.isfinite(value)):
        raise ValueError(f"{value!r:.40} is not a label")
    label: Label = value
    return label


def _moments(values: Iterable[Any]) -> Moments:
    n, mean, m2 = values
    if not (math.isfinite(mean) and 0 <= m2 < math.inf):
        raise ValueError("the moments of the targets are not numbers")
    return Moments(_whole(n), float(mean), float(m2))


def _time(value: Any, latest: float, earliest: float = 0.0) -> float:
    """Check a time, in seconds; written as a whole number where it is one."""
    if type(value) not in (int, float) or not (earliest <= value <= latest) or math.isinf(value):
        raise ValueError(f"{value!r:.40} is not a time between {earliest} and {latest}")
    return float(value)


def _to_json(head: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(head)
    except TypeError:  # a label of more than 64 bits
        return json.dumps(head).encode()
