"""Messages in columns: numbers in arrays, bytes in one buffer, an object for each only where somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, cast

import numpy as np
from kafka.record.util import decode_varint, encode_varint

from streamkernel.compute.record_batches import (
    HEADERS,
    KEY,
    OFFSET,
    SIZE,
    VALUE,
    VALUE_LENGTH,
    find_records,
)
from streamkernel.connectors.pass_through import SourceMessage
from streamkernel.connectors.ports import Raws

__all__ = ["Message", "Messages"]

# A record of a batch has seven numbers, of a byte at least.
_LEAST_BYTES = 7
# kafka-python reads later ones too.
_LAST_TIME = 2**63 - 1

Columns = np.ndarray[Any, np.dtype[np.int64]]


class Message(NamedTuple):
    """A message of a topic; its time is in milliseconds since 1970, or -1."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Messages:
    """Consecutive messages of a partition.

    Parameters
    ----------
    buffer
        The bytes of all, or a view of them until they are `joined`.
    columns
        What `streamkernel.compute.record_batches` knows of them; places count in the buffer.

    Examples
    --------
    >>> messages = Messages.of([Message(5, -1, b"k", b"one", [("h", b"1")]), Message(7, -1, None, None, [])])
    >>> list(messages.raws), messages.offsets, [message.headers for message in messages]
    ([b'one', b''], [5, 7], [[('h', b'1')], []])

    """

    def __init__(self, buffer: bytes | memoryview, columns: Columns) -> None:
        self.buffer: Any = buffer
        self.columns = columns

    @classmethod
    def of(cls, found: Iterable[Any]) -> Messages:
        """Return messages that somebody else has made objects of."""
        buffer, rows = bytearray(), []
        for one in found:
            time = -1 if one.timestamp is None else one.timestamp
            first, row = len(buffer), [one.offset, min(max(time, -_LAST_TIME), _LAST_TIME)]
            for part in (one.key, one.value):
                row += len(buffer), -1 if part is None else len(part)
                buffer += part or b""
            row += len(buffer), len(one.headers)
            for name, value in one.headers:
                for part in (name.encode(), value):
                    encode_varint(-1 if part is None else len(part), buffer.append)
                    buffer += part or b""
            rows.append([*row, len(buffer) - first])
        return cls(bytes(buffer), np.array(rows, np.int64).T.copy())

    @classmethod
    def in_batch(cls, data: memoryview, base_offset: int, first_timestamp: int, count: int) -> Messages | None:
        """Return the messages that `data` consists of; None where `find_records` refuses it."""
        if not 0 < count <= len(data) // _LEAST_BYTES:
            return None
        columns = np.empty((SIZE + 1, count), np.int64)
        found = find_records(np.frombuffer(data, np.uint8), base_offset, first_timestamp, columns)
        return cls(data, columns) if found else None

    @classmethod
    def joined(cls, several: Sequence[Messages]) -> Messages:
        """Return messages that follow one another as one."""
        if len(several) == 1 and isinstance(several[0].buffer, bytes):
            return several[0]
        columns = np.concatenate([messages.columns for messages in several], axis=1)
        counts = [len(messages) for messages in several]
        last = np.cumsum(counts) - 1
        # What was cut off at either end is left behind. A message is no shorter than from its key on.
        firsts, ends = columns[KEY, last + 1 - counts], columns[KEY, last] + columns[SIZE, last]
        edges = zip(several, firsts.tolist(), ends.tolist(), strict=True)
        parts = [memoryview(one.buffer)[first:end] for one, first, end in edges]
        lengths = np.array(list(map(len, parts)))
        columns[[KEY, VALUE, HEADERS]] += np.repeat(np.cumsum(lengths) - lengths - firsts, counts)
        return cls(b"".join(parts), columns)

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def __getitem__(self, part: slice) -> Messages:
        return Messages(self.buffer, self.columns[:, part])

    def __iter__(self) -> Iterator[Message]:
        for offset, timestamp, key, key_length, value, length, headers, n_headers, _ in self.columns.T.tolist():
            key_bytes = None if key_length < 0 else self.buffer[key : key + key_length]
            value_bytes = None if length < 0 else self.buffer[value : value + length]
            yield Message(
                offset, timestamp, key_bytes, value_bytes, self._headers(headers, n_headers) if n_headers else []
            )

    def sources(self) -> Iterator[SourceMessage]:
        """Make what the line of each may copy."""
        _, times, keys, key_lengths, _, _, headers, counts, _ = self.columns.tolist()
        # The same as calling SourceMessage for each, and cheaper.
        fields = zip(
            (None if n < 0 else self.buffer[key : key + n] for key, n in zip(keys, key_lengths, strict=True)),
            (tuple(self._headers(at, n)) if n else () for at, n in zip(headers, counts, strict=True)),
            times,
            strict=True,
        )
        return cast("Iterator[SourceMessage]", map(tuple.__new__, repeat(SourceMessage), fields))

    def _headers(self, at: int, count: int) -> list[tuple[str, bytes | None]]:
        headers = []
        for _ in range(count):
            length, begin = decode_varint(self.buffer, at)
            # A name that is not UTF-8 is odd, and costs no record.
            name = self.buffer[begin : begin + length].decode(errors="backslashreplace")
            length, at = decode_varint(self.buffer, begin + length)
            headers.append((name, None if length < 0 else self.buffer[at : at + length]))
            at += max(length, 0)
        return headers

    @property
    def n_bytes(self) -> int:
        """About how many bytes of memory they take."""
        return int(self.columns[SIZE].sum())

    @property
    def offsets(self) -> list[int]:
        """Where each is in its partition."""
        offsets: list[int] = self.columns[OFFSET].tolist()
        return offsets

    @property
    def raws(self) -> Raws:
        """The value of each, once they are `joined`; empty for a tombstone."""
        begins = self.columns[VALUE]
        return Raws(self.buffer, begins, begins + np.maximum(self.columns[VALUE_LENGTH], 0))

    def before(self, offset: int) -> int:
        """Return how many are before an offset."""
        return int(np.searchsorted(self.columns[OFFSET], offset))
