"""Decoding records that are JSON objects, wherever they come from."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import orjson

from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.columns.objects import ObjectColumns
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.decode import UndecodableError, decode_inputs
from streamkernel.connectors.names import find, take, with_normal_names
from streamkernel.connectors.ports import Label
from streamkernel.connectors.target_columns import Target

_NUMBERS = frozenset({float, int, bool})
# JSON has four blanks: Python's two others, \v and \f, are damage.
_WHITESPACE = b" \t\r\n"
# orjson rounds integers of more than 64 bits to floats at least this large.
_ROUNDED_FROM = 2.0**63
_LONGEST_INTEGER = 4000
_MOST_NAMES = 10_000


class JsonObjects(BulkDecoder):
    """Decode JSON objects in UTF-8; a byte order mark before one is skipped.

    ``null``, ``NaN`` and empty strings are absent inputs. Numbers, booleans and strings are taken as they are; integers
    of more than 64 bits as inputs become the nearest float, as targets and as texts they stay exact. Of a name that
    occurs twice in an object the last value counts.

    The parameters are those of `streamkernel.connectors.files.source.JsonLinesSource`, and those of `BulkDecoder`.

    Examples
    --------
    >>> JsonObjects("y", "bool", 256).decode_one(b'{"a": 1, "b": null, "y": true}')
    ({'a': 1}, True)

    """

    def __init__(self, target: Target, target_type: str, max_string: int, rules: ColumnRules | None = None) -> None:
        super().__init__(target, target_type, max_string, rules)
        # Without rules there is a shorter way.
        self._columns = None if rules is None and self.several is None else ObjectColumns(self.rules)
        self._names: set[str] = set()
        types = {} if rules is None else rules.settings.types
        # As text, each digit of a long integer counts.
        self._texts = [name for name, column in types.items() if column.type in ("string", "hash")]

    def decode_all(self, raws: Sequence[bytes]) -> tuple[list[dict[str, Any]], Sequence[Label | None], Sequence[int]]:
        """Return inputs, targets and the indices left out; see `BulkDecoder.decode_all`."""
        objects = self.load_all(raws)
        odd = []
        if not {dict}.issuperset(map(type, objects)):
            odd = [index for index, x in enumerate(objects) if type(x) is not dict]
            objects = [x for x in objects if type(x) is dict]
        targets: Sequence[Label | None] = [None] * len(objects)
        if self.target is not None:
            target = self.target
            plain = _is_plain(target)
            values = [x.pop(target, None) if plain else take(x, target) for x in objects]
            if float in map(type, values) and any(map(_is_rounded, values)):
                raise UndecodableError("target", "a target is to be read exactly")
            targets = self.targets.decode_all(values)
        if self._columns is not None:
            if self._lose_digits(objects):
                raise UndecodableError("input_type", "a text is to be read exactly")
            return self._columns.read_all(objects), targets, odd
        names = self._names
        # orjson lets no infinite number through.
        if not (names.issuperset(set().union(*objects)) and _are_numbers(objects)):
            objects = [
                x if names.issuperset(x) and _NUMBERS.issuperset(map(type, x.values())) else self._inputs(x)
                for x in objects
            ]
        return objects, targets, odd

    def decode_one(self, raw: bytes) -> tuple[dict[str, Any], Label | None] | None:
        """Return inputs and target; see `BulkDecoder.decode_one`."""
        if not raw.removeprefix(BOM_UTF8).strip(_WHITESPACE):
            return None
        x = self.load(raw)
        if type(x) is not dict:
            kind = "null" if x is None else f"a {type(x).__name__}"
            raise UndecodableError("not_an_object", f"{kind}, not an object")
        y = None if self.target is None else take(x, self.target)
        if _is_rounded(y):
            y = find(self.load_exactly(raw), str(self.target))
        label = self.targets.decode(y)
        if self._columns is None:
            return self._inputs(x), label
        if self._lose_digits([x]):
            x = self.load_exactly(raw)
            take(x, self.target or "")
        return self._columns.read(x), label

    def fields(self, raw: bytes) -> dict[str, Any]:
        """Return the values of an object, integers exactly; see `BulkDecoder.fields`."""
        return with_normal_names(self.values(raw))

    def read(self, name: str, value: Any) -> dict[str, Any]:
        """Return the inputs that a value becomes; see `BulkDecoder.read`."""
        return self.extras([(name, value)])

    def extras(self, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Return the inputs that names and plain values from next to an object become, by the same rules."""
        if self._columns is None:
            return decode_inputs(with_normal_names(dict(pairs)).items(), self.max_string)
        return self._columns.read(dict(pairs))

    def values(self, raw: bytes) -> Mapping[str, Any]:
        """Return the values of the object, integers exactly; see `BulkDecoder.values`."""
        values: dict[str, Any] = self.load(raw)
        if _holds_rounded(values):
            with suppress(UndecodableError):  # nested too deeply for Python's reader
                values = self.load_exactly(raw)
        return values

    def load_all(self, raws: Sequence[bytes]) -> list[Any]:
        """Return the values of records; what is no dict is loaded again by itself."""
        try:
            return list(map(orjson.loads, raws))
        except orjson.JSONDecodeError:
            return list(map(_loads_or_none, raws))

    def load(self, raw: bytes) -> Any:
        """Return the value of a record; raises `UndecodableError` where it cannot be read."""
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            if raw.startswith(BOM_UTF8):
                with suppress(orjson.JSONDecodeError):
                    return orjson.loads(raw.removeprefix(BOM_UTF8))
            return _loads_lenient(raw, error)

    def load_exactly(self, raw: bytes) -> Any:
        """Return the value of a record that `load` could read, with its long integers as they are."""
        return _loads_lenient(raw)

    def _lose_digits(self, objects: Sequence[dict[str, Any]]) -> bool:
        """Tell whether an integer that is read as text may be rounded."""
        for name in self._texts:
            plain = _is_plain(name)
            values = [x.get(name) if plain else find(x, name) for x in objects]
            if float in map(type, values) and any(map(_is_rounded, values)):
                return True
        return False

    def _inputs(self, values: dict[str, Any]) -> dict[str, Any]:
        new = not self._names.issuperset(values)
        if new:
            values = with_normal_names(values)
        inputs = decode_inputs(values.items(), self.max_string)
        # Names seen once need not be measured again; a stream of ever new names must not fill the memory.
        if new and len(self._names) < _MOST_NAMES:
            self._names.update(values)
        return inputs


def _are_numbers(objects: list[dict[str, Any]]) -> bool:
    """Tell whether all values are numbers or booleans, of what orjson can return."""
    try:
        # Nothing else can be added up, and a sum asks for the type of a value at a third of the cost.
        sum(chain.from_iterable(map(dict.values, objects)))
    except TypeError:
        return False
    return True


def _is_plain(name: str) -> bool:
    """Tell whether a name can only be that of a key: with dots it may be nested, beyond ASCII composed otherwise."""
    return "." not in name and name.isascii()


def _is_rounded(value: Any) -> bool:
    return type(value) is float and abs(value) >= _ROUNDED_FROM


def _holds_rounded(values: dict[str, Any]) -> bool:
    """Tell whether an object holds, at whatever depth, what may be an integer that orjson rounded."""
    left: list[Any] = [values]
    while left:
        one = left.pop()
        for value in one.values() if type(one) is dict else one:
            if type(value) is dict or type(value) is list:
                left.append(value)
            elif _is_rounded(value):
                return True
    return False


def _loads_or_none(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _loads_lenient(raw: bytes, reason: orjson.JSONDecodeError | None = None) -> Any:
    """Decode what orjson will not or not exactly: NaN, numbers beyond the range of a float, long integers."""
    try:
        text = raw.decode().removeprefix("\ufeff")
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
