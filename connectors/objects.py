"""Decoding of records that are JSON objects, of any source."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import orjson

from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.scanner import ColumnScanner, JsonScanner
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.names import find, take, with_normal_names
from streamkernel.connectors.ports import Label
from streamkernel.connectors.target_columns import Target

# The blanks of JSON.
_WHITESPACE = b" \t\r\n"
# orjson rounds integers of more than 64 bits to floats at least this large.
_ROUNDED_FROM = 2.0**63
_LONGEST_INTEGER = 4000


class JsonObjects(BulkDecoder):
    """A decoder of JSON objects in UTF-8, with or without a byte order mark.

    ``null``, ``NaN`` and empty texts are missing inputs. Numbers, booleans and texts stay as they are. Integers of more
    than 64 bits become the nearest float as inputs, and stay exact as targets and texts. The last value of a name in an
    object counts.

    The parameters are those of `streamkernel.connectors.files.source.JsonLinesSource`, and those of `BulkDecoder`.

    Examples
    --------
    >>> JsonObjects("y", "bool", 256).decode_one(b'{"a": 1, "b": null, "y": true}')
    ({'a': 1}, True)

    """

    def __init__(self, target: Target, target_type: str, max_string: int, rules: ColumnRules | None = None) -> None:
        super().__init__(target, target_type, max_string, rules)
        types = {} if rules is None else rules.settings.types
        # Integers in these columns keep all their digits.
        # With dots the target may be nested, beyond ASCII its name may be composed otherwise.
        self._is_plain = self.target is not None and "." not in self.target and self.target.isascii()
        self._texts = [name for name, column in types.items() if column.type in ("string", "hash")]

    @cached_property
    def scanner(self) -> ColumnScanner | None:
        return JsonScanner(self.target, self.target_type, self.max_string, self.rules)

    def decode_one(self, raw: bytes) -> tuple[dict[str, Any], Label | None] | None:
        """Return inputs and target; see `BulkDecoder.decode_one`."""
        if raw[:1] != b"{" and not raw.removeprefix(BOM_UTF8).strip(_WHITESPACE):
            return None
        x = self.load(raw)
        if type(x) is not dict:
            kind = "null" if x is None else f"a {type(x).__name__}"
            raise UndecodableError("not_an_object", f"{kind}, not an object")
        y = None if self.target is None else x.pop(self.target, None) if self._is_plain else take(x, self.target)
        if type(y) is float and _is_rounded(y):
            y = find(self.load_exactly(raw), str(self.target))
        label = self.targets.decode(y)
        # Integers that are read as text must not be rounded.
        if self._texts and any(_is_rounded(find(x, name)) for name in self._texts):
            x = self.load_exactly(raw)
            take(x, self.target or "")
        return self.rules.read(x), label

    def fields(self, raw: bytes) -> dict[str, Any]:
        """Return the values of an object, integers exactly; see `BulkDecoder.fields`."""
        return with_normal_names(self.values(raw))

    def read(self, name: str, value: Any) -> dict[str, Any]:
        """Return the inputs that a value becomes; see `BulkDecoder.read`."""
        return self.extras([(name, value)])

    def extras(self, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Return the inputs of values from outside an object, by the same rules."""
        return self.rules.read(dict(pairs))

    def values(self, raw: bytes) -> Mapping[str, Any]:
        """Return the values of the object, integers exactly; see `BulkDecoder.values`."""
        values: dict[str, Any] = self.load(raw)
        if _holds_rounded(values):
            with suppress(UndecodableError):  # nested too deeply for Python's reader
                values = self.load_exactly(raw)
        return values

    def load(self, raw: bytes) -> Any:
        """Return the value of a record; raises `UndecodableError` if it is not JSON."""
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            if raw.startswith(BOM_UTF8):
                with suppress(orjson.JSONDecodeError):
                    return orjson.loads(raw.removeprefix(BOM_UTF8))
            return _loads_lenient(raw, error)

    def load_exactly(self, raw: bytes) -> Any:
        """Return the value of a record that `load` can read, with exact long integers."""
        return _loads_lenient(raw)


def _is_rounded(value: Any) -> bool:
    return type(value) is float and abs(value) >= _ROUNDED_FROM


def _holds_rounded(values: dict[str, Any]) -> bool:
    """Whether an object holds, at any depth, an integer that orjson may have rounded."""
    left: list[Any] = [values]
    while left:
        one = left.pop()
        for value in one.values() if type(one) is dict else one:
            if type(value) is dict or type(value) is list:
                left.append(value)
            elif _is_rounded(value):
                return True
    return False


def _loads_lenient(raw: bytes, reason: orjson.JSONDecodeError | None = None) -> Any:
    """Decode JSON that orjson refuses or rounds: NaN, numbers beyond the range of a float, long integers."""
    try:
        text = raw.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UndecodableError("encoding", f"byte {raw[error.start]:#04x} at {error.start} is not UTF-8") from None
    try:
        value = json.loads(text, parse_int=_integer)
        # A lone surrogate could not be written to an output.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise UndecodableError("not_json", str(reason)) from None
    return value


def _integer(digits: str) -> int | float:
    # Python refuses to convert very long integers.
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)
