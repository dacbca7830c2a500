"""Columns of many rows of CSV at once, from their bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamkernel.compute.jit import Array
from streamkernel.compute.scanning import MOST_WORDS, NUMBERS, WORDS, Places, scan_rows
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.scanner import ColumnScanner
from streamkernel.connectors.columns.settings import ColumnSettings
from streamkernel.connectors.files.fields import n_named
from streamkernel.connectors.names import nfc

__all__ = ["CsvScanner"]


class CsvScanner(ColumnScanner):
    """A scanner of rows of CSV, for `streamkernel.connectors.files.rows.CsvRows`, whose parameters it has.

    A column has numbers and texts. Odd are blank rows, those of another width, with a byte order mark, or with fields
    that may be the header again; control characters; quotes within a field; what reads as a number in Python alone, or
    in another notation; and all that the rules of columns refuse.

    Examples
    --------
    >>> from streamkernel.connectors.columns.settings import InputSettings
    >>> rules = ColumnRules(InputSettings(), 256).in_texts()
    >>> rows = [b"1,red,yes", b"2.5,7,no", b",,", b"1,2"]
    >>> ends = np.cumsum(list(map(len, rows)))
    >>> scanner = CsvScanner(["a", "b", "y"], "y", "bool", ",", "utf-8", 256, rules)
    >>> found = scanner.scan(b"".join(rows), ends - list(map(len, rows)), ends)
    >>> found.names, found.numbers[:3].tolist(), found.plain.tolist()
    (('a', 'b'), [[1.0, nan], [2.5, 7.0], [nan, nan]], [True, True, True, False])
    >>> found.texts[0].codes.tolist(), found.texts[0].values, found.targets.codes.tolist(), found.targets.values
    ([0, -1, -1, -1], ['red'], [0, 1, -1, -1], [True, False])

    """

    def __init__(
        self,
        columns: Sequence[str],
        target: str | Sequence[str] | None,
        target_type: str,
        delimiter: str,
        encoding: str,
        max_string: int,
        rules: ColumnRules,
    ) -> None:
        super().__init__(target, target_type, max_string, rules)
        self._delimiter = ord(delimiter)
        self._add_columns(columns)
        self._kinds[n_named(columns) :] = 0
        used = [name for name, kind in zip(columns, self._kinds.tolist(), strict=True) if kind]
        self._header = set(map(_folded, columns))
        # The fewest words that the header has in the columns that are used.
        self._fewest = len(used) - sum(map(_is_number, map(_folded, columns)))
        times = Counter(columns)
        # The parts of a missing date may be other columns too, which are then missing.
        odd = any(times[name] > 1 or (name != self._target and self._type(name) == "date") for name in used)
        readable = encoding == "utf-8" and delimiter.isascii() and delimiter not in '\0"'
        known = target is None or self._target in used
        self._usable = self._usable and readable and known and self._fewest > 0 and not odd

    def _forget(self) -> None:
        super()._forget()
        # Whether a word is a name in the header; the last one is no word.
        self._is_name = np.zeros(MOST_WORDS + 1, np.bool_)

    def _read(self, data: int, starts: Array, ends: Array, sound: bool, found: Places, plain: Array) -> None:
        scan_rows(data, starts, ends, self._delimiter, sound, found, plain)

    def _value(self, word: bytes) -> Any:
        return word.decode()

    def _kind(self, name: str) -> int:
        kind, one = super()._kind(name), self._rules.settings.types.get(name, ColumnSettings())
        own_notation = name != self._target and (one.decimal is not None or one.thousands is not None)
        numbers = 0 if own_notation or self._rules.numbers is not None else kind & NUMBERS
        return WORDS | numbers if kind else 0

    def _learn_words(self) -> None:
        first = self._n_words
        super()._learn_words()
        for number, (begin, end) in enumerate(self._words.table[first : self._n_words, :2].tolist(), first):
            word = self._words.letters[begin:end].tobytes().decode()
            self._is_name[number] = _folded(word) in self._header

    def _may_be_plain(self, codes: Array) -> Array | bool:
        if not self._is_name.any():
            return True
        is_plain: Array = self._is_name[codes].sum(axis=1) < self._fewest
        return is_plain


def _folded(name: str) -> str:
    return nfc(name.strip()).casefold()


def _is_number(name: str) -> bool:
    """Whether a name may be a field that is no word."""
    try:
        float(name or "0")
    except ValueError:
        return False
    return True
