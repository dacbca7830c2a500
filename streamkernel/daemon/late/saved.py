"""The ledger in a checkpoint, and back: plain values in the header, what waits as one run of bytes behind the model.

The bytes begin with a line of JSON; then come the lengths of the records that wait, as 32-bit integers, and the records
as they were packed when they came. Nothing in them is executed, and all of it is checked before it is used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import orjson

from connectors.ports import Label, Position
from streamkernel.daemon.base.accounts import LateAccount
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.late.ledger import Ledger
from streamkernel.daemon.late.moments import Moments
from streamkernel.daemon.late.sizes import size_of_record
from streamkernel.daemon.late.step import Early, Entry

__all__ = ["dump", "part", "restore"]

_VERSION = 1
_LENGTHS = np.dtype("<u4")


def dump(ledger: Ledger) -> tuple[dict[str, Any], bytes]:
    """Write a ledger as plain values for the header of a checkpoint, and bytes for its payload.

    Raises
    ------
    CheckpointError
        It holds what `restore` would refuse.

    """
    try:
        return _dump(ledger)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise CheckpointError(f"the late labels cannot be written to a checkpoint: {error!s:.200}") from None


def _dump(ledger: Ledger) -> tuple[dict[str, Any], bytes]:
    records = [entry.data for _, entry in ledger.pending if entry.data is not None]
    _balance(ledger, len(records))
    streams: dict[str, int] = {}
    waiting = [
        [
            key,
            _label(early.y),
            _time(early.arrived, ledger.now),
            streams.setdefault(early.position.stream, len(streams)),
            *early.position[1:],
        ]
        for key, early in ledger.waiting
    ]
    settled = list(ledger.settled)
    head = {
        "version": _VERSION,
        "records": len(records),
        "tables": ledger.packer.dump(),
        "waiting": waiting,
        "streams": list(streams),
        "settled": [key for key, _ in settled],
        "labelled": "".join("1" if labelled else "0" for _, labelled in settled),
    }
    lengths = np.fromiter(map(len, records), _LENGTHS, len(records)).tobytes()
    blob = b"".join([_to_json(head), b"\n", lengths, *records])
    header = {
        "account": ledger.account.to_json(),
        "pending": len(records),
        "waiting": len(waiting),
        "positions": [list(position) for position in ledger.positions.values()],
        "recent_dead": ledger.recent_dead,
        "label_next": ledger.label_next,
        "clock": _time(ledger.read_clock(), math.inf),
        "moments": list(_moments(ledger.moments)),
        "bytes": len(blob),
    }
    return header, blob


def part(payload: bytes, header: Mapping[str, Any] | None) -> tuple[bytes, bytes]:
    """Part the payload of a checkpoint into the model and what `dump` gave.

    Parameters
    ----------
    payload
        All of it.
    header
        What `dump` gave for the header; None where there were no late labels.

    Raises
    ------
    CheckpointError
        The header speaks of more bytes than there are.

    """
    if header is None:
        return payload, b""
    try:
        length = _whole(header["bytes"])
        if length > len(payload):
            raise ValueError(f"{length} bytes are more than the {len(payload)} there are")
    except (ValueError, TypeError, LookupError) as error:
        raise CheckpointError(f"the late labels of the checkpoint cannot be restored: {error!s:.200}") from None
    end = len(payload) - length
    return payload[:end], payload[end:]


def restore(ledger: Ledger, header: Mapping[str, Any], blob: bytes) -> None:
    """Fill a new ledger with what `dump` wrote.

    Raises
    ------
    CheckpointError
        It is damaged, or something that `dump` does not write.

    """
    try:
        _restore_header(ledger, header)
        _restore_blob(ledger, blob)
        _balance(ledger, header["pending"])
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise CheckpointError(f"the late labels of the checkpoint cannot be restored: {error!s:.200}") from None
    ledger.journal.forget()


def _restore_header(ledger: Ledger, header: Mapping[str, Any]) -> None:
    account = {field.name: _whole(header["account"][field.name]) for field in fields(LateAccount)}
    ledger.account = LateAccount(**account)
    for stream, partition, offset in header["positions"]:
        ledger.positions[_whole(partition)] = Position(_text(stream), partition, _whole(offset))
    ledger.recent_dead = [_whole(number) for number in header["recent_dead"]]
    if type(header["label_next"]) is not bool:
        raise ValueError("label_next is no boolean")
    ledger.label_next = header["label_next"]
    ledger.set_clock(_time(header["clock"], math.inf))
    ledger.moments = _moments(header["moments"])


def _restore_blob(ledger: Ledger, blob: bytes) -> None:
    line, _, rest = blob.partition(b"\n")
    head = json.loads(line)
    if head["version"] != _VERSION:
        raise ValueError(f"their version is {head['version']!s:.20}, this streamkernel reads version {_VERSION}")
    now = ledger.now
    start = _LENGTHS.itemsize * _whole(head["records"])
    ends = [0, *accumulate(np.frombuffer(rest[:start], _LENGTHS).tolist())]
    if len(ends) != head["records"] + 1 or start + ends[-1] != len(rest):
        raise ValueError(f"{len(rest)} bytes are not what {head['records']} records take")
    records = [rest[start + first : start + last] for first, last in pairwise(ends)]
    before = 0.0
    for kept, data in zip(ledger.packer.load(head["tables"], records), records, strict=True):
        before = _time(kept.arrived, now, before)
        _refuse_double(ledger, kept.key)
        ledger.pending.put(kept.key, Entry(before, size_of_record(kept.key, kept.x), data=data))
    before = 0.0
    for key, y, arrived, stream, partition, offset in head["waiting"]:
        before = _time(arrived, now, before)
        _refuse_double(ledger, _text(key))
        position = Position(_text(head["streams"][_whole(stream)]), _whole(partition), _whole(offset))
        ledger.waiting.put(key, Early(_label(y), before, position))
    if set(head["labelled"]) - {"0", "1"}:
        raise ValueError("of a key it is not said whether its label came")
    for key, labelled in zip(head["settled"], head["labelled"], strict=True):
        _refuse_double(ledger, _text(key))
        ledger.settled.put(key, labelled == "1")


def _balance(ledger: Ledger, pending: Any) -> None:
    if len(ledger.pending) != pending or not ledger.account.balances(len(ledger.pending), len(ledger.waiting)):
        raise ValueError("the account does not add up")


def _refuse_double(ledger: Ledger, key: str) -> None:
    if key in ledger.pending or key in ledger.waiting or key in ledger.settled:
        raise ValueError(f"the key {key!r:.40} stands there twice")


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} is no count")
    return value


def _text(value: Any) -> str:
    if type(value) is not str or not value:
        raise ValueError(f"{value!r:.40} is no text")
    return value


def _label(value: Any) -> Label:
    if type(value) not in (str, int, float, bool) or (type(value) is float and not math.isfinite(value)):
        raise ValueError(f"{value!r:.40} is no label")
    label: Label = value
    return label


def _moments(values: Iterable[Any]) -> Moments:
    n, mean, m2 = values
    if not (math.isfinite(mean) and 0 <= m2 < math.inf):
        raise ValueError("the moments of the targets are no numbers")
    return Moments(_whole(n), float(mean), float(m2))


def _time(value: Any, latest: float, earliest: float = 0.0) -> float:
    """Check a time, in seconds; written as a whole number where it is one."""
    if type(value) not in (int, float) or not (earliest <= value <= latest) or math.isinf(value):
        raise ValueError(f"{value!r:.40} is no time between {earliest} and {latest}")
    return float(value)


def _to_json(head: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(head)
    except TypeError:  # a label of more than 64 bits
        return json.dumps(head).encode()
