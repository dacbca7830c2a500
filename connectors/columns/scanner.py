"""Columns of many records at once, from their bytes: no Python object is made for a value.

A scanner takes what is usual. Records that it leaves out, the odd ones, are for a decoder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import orjson

from streamkernel.compute.decimals import powers_of_five
from streamkernel.compute.jit import Array
from streamkernel.compute.scanning import (
    MOST_BYTES,
    MOST_WORDS,
    NUMBERS,
    TEXTS,
    TRUTHS,
    WORDS,
    Places,
    no_words,
    packed_keys,
    places,
    scan_objects,
)
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import ColumnSettings, ColumnType, InputSettings
from streamkernel.connectors.decode import TargetDecoder
from streamkernel.connectors.names import nfc
from streamkernel.connectors.ports.columns import CodedColumn

__all__ = ["ColumnScanner", "JsonScanner", "ScannedRows"]

_MISSING, _ODD = -1, -2
_LAST_OF_ASCII = 127
_MOST_KEYS = 256
_LOOKED_AT = 4
# Records that are left out where most are odd: twice as many each time.
_FIRST_REST, _LONGEST_REST = 2**10, 2**17


class ScannedRows(NamedTuple):
    """The columns of n records.

    Attributes
    ----------
    names
        The p input columns with numbers.
    numbers
        float64 of shape (n, p); NaN where a record has none. True is 1.
    texts
        The input columns with texts. A column may have both.
    targets
        The labels: float64 of shape (n,), NaN where there is none, where labels are floats; else codes. None where
        records have no target.
    plain
        Booleans of shape (n,): False for odd records, which have nothing in any column.

    """

    names: tuple[str, ...]
    numbers: Array
    texts: list[CodedColumn]
    targets: Array | CodedColumn | None
    plain: Array


class ColumnScanner(ABC):
    """What scanners have in common.

    The parameters are those of `BulkDecoder`.
    """

    def __init__(
        self, target: str | Sequence[str] | None, target_type: str, max_string: int, rules: ColumnRules | None = None
    ) -> None:
        self._rules = rules or ColumnRules(InputSettings(), max_string)
        self._target = nfc(target) if isinstance(target, str) else None
        self._usable = target is None or self._target is not None
        self._is_float = target_type == "float"
        form = self._rules.numbers
        self._targets = TargetDecoder(target_type, max_string, None if form is None else form.plain)
        self._names: list[str] = []
        self._kinds = np.zeros(0, np.int64)
        # Whether a column has had numbers.
        self._held = np.zeros(0, np.bool_)
        self._keys = packed_keys([])
        self._powers = powers_of_five()
        self._words = no_words()
        self._forget()
        self._rest, self._next_rest = 0, _FIRST_REST

    def scan(self, buffer: bytes, starts: Array, ends: Array) -> ScannedRows | None:
        """Return the columns of n records, whose bytes are from `starts` up to `ends`; None if they cannot be scanned.

        A plain record has exactly what its decoder makes of it.
        """
        n = len(starts)
        if not self._usable or n == 0 or self._rest > 0:
            self._rest -= n
            return None
        if starts.min() < 0 or ends.max() > len(buffer):
            raise ValueError("a record is not within the bytes")
        if self._words.total[0] > MOST_WORDS // 2 or self._words.table[self._n_words, 0] > MOST_BYTES // 2:
            self._forget()
        shape = n, len(self._names)
        numbers, codes, plain = np.full(shape, np.nan), np.full(shape, _MISSING), np.empty(n, np.bool_)
        last = np.full(len(self._names), _MISSING)
        # In memory, bytes have a head before them and a zero after them, which may be read too.
        data = np.frombuffer(buffer, np.uint8).ctypes.data
        found = places(self._words, self._powers, self._keys, self._kinds, numbers, codes, last)
        self._read(data, starts, ends, _are_utf8(buffer, starts, ends), found, plain)
        self._learn_words()
        plain &= self._may_be_plain(codes)
        coded = {column: self._coded(column, codes, plain) for column in self._values}
        odd = np.flatnonzero(~plain)
        numbers[odd] = np.nan
        for one in coded.values():
            one.codes[odd] = _MISSING
        self._rest = self._next_rest if 2 * len(odd) > n else 0
        self._next_rest = min(2 * self._next_rest, _LONGEST_REST) if self._rest else _FIRST_REST
        return self._rows(numbers, coded, plain)

    @abstractmethod
    def _read(self, data: int, starts: Array, ends: Array, sound: bool, found: Places, plain: Array) -> None:
        """Fill in the arrays."""

    @abstractmethod
    def _value(self, word: bytes) -> Any:
        """Return what a word says; raises ValueError."""

    def _may_be_plain(self, _codes: Array) -> Array | bool:
        """Whether each record may be plain, by the words that it has."""
        return True

    def _add_columns(self, names: Sequence[str]) -> None:
        self._names += names
        self._kinds = np.array(list(map(self._kind, self._names)), np.int64)
        self._held = np.append(self._held, np.zeros(len(names), np.bool_))

    def _kind(self, name: str) -> int:
        """Return what is read in a column."""
        if name == self._target:
            return NUMBERS if self._is_float else WORDS
        reader = self._rules.column(name)
        if reader is None:
            return 0
        if self._type(name) in ("string", "hash"):
            return WORDS
        return TEXTS | (NUMBERS | TRUTHS if reader.keeps_numbers else 0)

    def _type(self, name: str) -> ColumnType:
        return self._rules.settings.types.get(name, ColumnSettings()).type

    def _forget(self) -> None:
        """Begin again with words."""
        self._words.total[0] = self._n_words = 0
        self._words.slots[:] = _MISSING
        # The last one is that of no word.
        self._codes = np.full(MOST_WORDS + 1, _MISSING)
        # By column, the code of each value, and the values.
        self._known: dict[int, dict[Any, int]] = {}
        self._values: dict[int, list[Any]] = {}

    def _learn_words(self) -> None:
        """Give each new word its code."""
        new = range(self._n_words, int(self._words.total[0]))
        for number, (begin, end, column, _) in zip(new, self._words.table[new.start : new.stop].tolist(), strict=True):
            known, values = self._known.setdefault(column, {}), self._values.setdefault(column, [])
            try:
                value = self._meaning(column, self._words.letters[begin:end].tobytes())
            except ValueError:
                self._codes[number] = _ODD
                continue
            if value is not None:
                self._codes[number] = code = known.setdefault(value, len(values))
                if code == len(values):
                    values.append(value)
        self._n_words = new.stop

    def _meaning(self, column: int, word: bytes) -> Any:
        """Return the text or label that a word becomes, None for a missing one; raises ValueError."""
        name, value = self._names[column], self._value(word)
        if name == self._target:
            read: Any = self._targets.decode(value)
            is_odd = self._is_float and read is not None
        else:
            reader = self._rules.column(name)
            (read,) = (None,) if reader is None else reader.read(value)
            is_odd = not isinstance(read, str | None)
        if is_odd:
            raise ValueError("a number among words")
        return read

    def _coded(self, column: int, codes: Array, plain: Array) -> CodedColumn:
        """Return a column of words as codes; records with odd ones are not plain."""
        found = self._codes[codes[:, column]]
        plain &= found != _ODD
        return CodedColumn(self._names[column], found, self._values.get(column, []))

    def _rows(self, numbers: Array, coded: dict[int, CodedColumn], plain: Array) -> ScannedRows:
        """Return the columns, parted from the target."""
        self._held |= ~np.isnan(numbers).all(axis=0)
        target = self._names.index(self._target) if self._target in self._names else -1
        held = [column for column in np.flatnonzero(self._held).tolist() if column != target]
        # Neighbors are not copied.
        first, stop = (held[0], held[-1] + 1) if held else (0, 0)
        chosen = numbers[:, first:stop] if len(held) == stop - first else numbers[:, held]
        texts = [one for column, one in coded.items() if column != target and one.values]
        names = tuple(self._names[column] for column in held)
        return ScannedRows(names, chosen, texts, self._labels(target, numbers, coded), plain)

    def _labels(self, target: int, numbers: Array, coded: dict[int, CodedColumn]) -> Array | CodedColumn | None:
        if self._target is None:
            return None
        if self._is_float:
            return np.full(len(numbers), np.nan) if target < 0 else numbers[:, target].copy()
        return coded.get(target) or CodedColumn(self._target, np.full(len(numbers), _MISSING), [])


class JsonScanner(ColumnScanner):
    """A scanner of JSON objects, for `streamkernel.connectors.objects.JsonObjects`.

    It learns the keys from records. Odd are records with other keys, keys beyond ASCII or the same key twice; nested
    values; integers of more than 64 bits; texts with letters as numbers; what a column's settings make something else
    of than a number or a text; and all that orjson or the rules of columns refuse.

    Examples
    --------
    >>> records = [b'{"a": 0.5, "b": "red", "y": 1}', b'{"y": 0, "a": true, "b": null}', b'{"a": [], "y": 1}']
    >>> ends = np.cumsum(list(map(len, records)))
    >>> rows = JsonScanner("y", "bool", 256).scan(b"".join(records), ends - list(map(len, records)), ends)
    >>> rows.names, rows.numbers.tolist(), rows.plain.tolist()
    (('a',), [[0.5], [1.0], [nan]], [True, True, False])
    >>> rows.texts[0].codes.tolist(), rows.texts[0].values, rows.targets.codes.tolist(), rows.targets.values
    ([0, -1, -1], ['red'], [0, 1, -1], [True, False])

    """

    def __init__(
        self, target: str | Sequence[str] | None, target_type: str, max_string: int, rules: ColumnRules | None = None
    ) -> None:
        super().__init__(target, target_type, max_string, rules)
        self._met: Counter[str] = Counter()

    def scan(self, buffer: bytes, starts: Array, ends: Array) -> ScannedRows | None:
        """Return the columns of n records; see `ColumnScanner.scan`."""
        if not self._names:
            self._learn(buffer, starts, ends, np.arange(len(starts)))
        rows = super().scan(buffer, starts, ends)
        if rows is not None and not rows.plain.all():
            self._learn(buffer, starts, ends, np.flatnonzero(~rows.plain))
        return rows

    def _read(self, data: int, starts: Array, ends: Array, sound: bool, found: Places, plain: Array) -> None:
        scan_objects(data, starts, ends, sound, found, plain)

    def _value(self, word: bytes) -> Any:
        return orjson.loads(word)

    def _learn(self, buffer: bytes, starts: Array, ends: Array, rows: Array) -> None:
        """Learn the keys of the first object, later those that come again."""
        times = 2 if self._names else 1
        for row in rows[:_LOOKED_AT].tolist():
            with suppress(ValueError):
                found = orjson.loads(buffer[starts[row] : ends[row]])
                self._met.update(filter(self._may_be_known, found) if type(found) is dict else ())
            if times == 1 and self._met:
                break
        new = [name for name, count in self._met.items() if count >= times]
        if new:
            self._add_columns(new[: _MOST_KEYS - len(self._names)])
            self._keys = packed_keys([name.encode() for name in self._names])
        if new or len(self._met) > _MOST_KEYS:
            self._met.clear()

    def _may_be_known(self, name: str) -> bool:
        is_plain = name.isascii() and name.isprintable() and '"' not in name and "\\" not in name
        # The parts of a missing date may be other columns too, which are then missing.
        is_plain = is_plain and len(name) <= self._rules.max_string and self._type(name) != "date"
        return is_plain and name not in self._names


def _are_utf8(buffer: bytes, starts: Array, ends: Array) -> bool:
    """Whether records are UTF-8; between them may be other bytes."""
    if buffer.isascii():
        return True
    beyond = np.flatnonzero(np.frombuffer(buffer, np.uint8) > _LAST_OF_ASCII)
    rows = np.flatnonzero(np.searchsorted(beyond, starts) < np.searchsorted(beyond, ends))
    try:
        b"\n".join(map(buffer.__getitem__, map(slice, starts[rows].tolist(), ends[rows].tolist()))).decode()
    except UnicodeDecodeError:
        return False
    return True
