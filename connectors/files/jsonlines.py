"""Records that are JSON objects, one a line."""

from __future__ import annotations

import json
from itertools import islice
from os import PathLike
from typing import Any

import orjson

from connectors.decode import UndecodableError, decode_inputs, target_decoder
from connectors.files.lines import Chunk
from connectors.files.source import LineSource
from connectors.ports import Fault, Label, Record

_NUMBERS = frozenset({float, int, bool})
# orjson rounds integers of more than 64 bits to floats at least this large.
_ROUNDED_FROM = 2.0**63
_LONGEST_INTEGER = 4000
_MOST_NAMES = 10_000


class JsonLinesSource(LineSource):
    """Read JSON lines in UTF-8.

    ``null``, ``NaN`` and empty strings are absent inputs. Numbers, booleans and strings are taken as they are;
    integers of more than 64 bits as inputs become the nearest float, as targets they stay exact. Of a name that
    occurs twice in an object the last value counts.

    Parameters
    ----------
    path
        A file, plain or ending in .gz or .zst, or ``"-"`` for standard input.
    target
        The key of the target; None: no target, every record is unlabelled.
    target_type
        ``"str"``, ``"int"``, ``"bool"`` or ``"float"``; see `connectors.decode.target_decoder`.
    follow
        Whether to wait for more at the end of a plain file, and to go on in the next one when it is rotated.
    max_record_bytes
        The longest line, in bytes; a longer one is a fault.
    max_string
        The most characters of a name or a string value; more is a fault.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b'{"a": 1, "b": null, "y": true}\\n[1, 2]\\n')
    ...     file.flush()
    ...     with JsonLinesSource(file.name, target="y", target_type="bool") as source:
    ...         source.open()
    ...         records = source.poll(10, timeout=0)
    >>> records[0].x, records[0].y
    ({'a': 1}, True)
    >>> records[1].fault
    Fault(reason='not_an_object', detail='a list, not an object')

    """

    kind = "jsonl"

    def __init__(
        self,
        path: str | PathLike[str],
        target: str | None = None,
        target_type: str = "str",
        follow: bool = False,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
    ) -> None:
        super().__init__(path, follow, max_record_bytes)
        self.target = target
        self.target_type = target_type
        self.max_string = max_string
        self._decode_target = target_decoder(target_type, max_string)
        self._names: set[str] = set()

    def _decode(self, chunk: Chunk) -> list[Record]:
        # This loop runs once a record: what needs no call is done in place, everything unusual in a method.
        target, decode_target, names, loads, new = (
            self.target,
            self._decode_target,
            self._names,
            orjson.loads,
            tuple.__new__,
        )
        records = []
        lines, positions = chunk.lines, chunk.positions
        for raw, position, following in zip(lines, positions, islice(positions, 1, None), strict=False):
            y: Label | None = None
            fault: Fault | None = None
            try:
                try:
                    x = loads(raw)
                except orjson.JSONDecodeError as error:
                    if not raw or raw.isspace():
                        records.append(Record({}, None, position, following, raw, blank=True))
                        continue
                    x, y = self._lenient(raw, error)
                else:
                    if type(x) is not dict:
                        raise UndecodableError("not_an_object", f"{_kind(x)}, not an object")
                    if target is not None:
                        y = x.pop(target, None)
                        if y is not None:
                            if type(y) is float and abs(y) >= _ROUNDED_FROM:
                                y = _loads_lenient(raw)[target]
                            y = decode_target(y)
                    # orjson lets no infinite number through.
                    if not (_NUMBERS.issuperset(map(type, x.values())) and names.issuperset(x)):
                        x = self._inputs(x)
            except UndecodableError as error:
                x, y, fault = {}, None, error.fault
            records.append(new(Record, (x, y, position, following, raw, fault, False)))
        return records

    def _lenient(self, raw: bytes, reason: orjson.JSONDecodeError) -> tuple[dict[str, Any], Label | None]:
        """Decode a line that orjson refused."""
        values = _loads_lenient(raw, reason)
        if type(values) is not dict:
            raise UndecodableError("not_an_object", f"{_kind(values)}, not an object")
        y = None if self.target is None else self._decode_target(values.pop(self.target, None))
        return self._inputs(values), y

    def _inputs(self, values: dict[str, Any]) -> dict[str, Any]:
        inputs = decode_inputs(values.items(), self.max_string)
        # Names seen once need not be measured again; a stream of ever new names must not fill the memory.
        if len(self._names) < _MOST_NAMES:
            self._names.update(values)
        return inputs


def _kind(value: object) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _loads_lenient(raw: bytes, reason: orjson.JSONDecodeError | None = None) -> Any:
    """Decode what orjson will not or not exactly: NaN, numbers beyond the range of a float, long integers."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise UndecodableError("encoding", f"byte {raw[error.start]:#04x} at {error.start} is not UTF-8") from None
    try:
        value = json.loads(text, parse_int=_integer)
        # A lone surrogate is no character: nothing it went into could be written out again.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise UndecodableError("not_json", str(reason)) from None
    return value


def _integer(digits: str) -> int | float:
    # Python refuses to convert very long integers, which are beyond the range of a float anyway.
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)
