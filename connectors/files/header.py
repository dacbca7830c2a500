"""The header of a CSV file: the names of its columns, or why they cannot be used."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.decode import UndecodableError, finite_floats, listed, shown
from streamkernel.connectors.files.fields import n_named, split_fields
from streamkernel.connectors.names import hint, nfc
from streamkernel.connectors.target_columns import Target, names_of

__all__ = ["HEADER_MOVED", "HeaderAgain", "UnusableHeaderError", "delimiter_hint", "header_columns"]

HEADER_MOVED = "the header is repeated with its columns in another order"


class UnusableHeaderError(ValueError):
    """A header names no columns that can be used; the message says why and what to do, not in which file."""


class HeaderAgain:
    """Tells rows that are the header once more, as where files were put together, from records.

    Case and blanks round a name do not count, unless they alone tell two columns apart.

    Parameters
    ----------
    columns
        The names of the columns.

    Attributes
    ----------
    word
        What each line that is the header holds in small letters; empty: that is not known.

    Examples
    --------
    >>> again = HeaderAgain(["x", "y", "label"])
    >>> [again.has_names(row) for row in (["X", "y ", "label"], ["label", "x", "y"], ["x", "y", "y"])]
    [True, True, False]
    >>> again.in_order(["X", "y ", "label"]), again.in_order(["label", "x", "y"])
    (True, False)

    """

    def __init__(self, columns: Sequence[str]) -> None:
        n_different = len(set(columns))
        self._fold = _folded if len(set(map(_folded, columns))) == n_different > 1 else str
        self._names = list(map(self._fold, columns))
        # A row of numbers in another order is a record.
        self._arranged = sorted if finite_floats(columns) is None else list
        self._known, self._wanted = set(self._names), self._arranged(self._names)
        # A quote in a name would be doubled.
        plain = [name for name in self._names if name.isascii() and '"' not in name]
        self.word = max(plain, key=len, default="").lower()

    def has_names(self, row: Sequence[str]) -> bool:
        """Return whether the fields of a row are the names of all columns, in whatever order."""
        fold = self._fold
        return fold(row[0]) in self._known and self._arranged(map(fold, row)) == self._wanted

    def in_order(self, row: Sequence[str]) -> bool:
        """Return whether the fields of a row are the names of the columns in their order."""
        return list(map(self._fold, row)) == self._names


def _folded(name: str) -> str:
    return nfc(name.strip()).casefold()


def delimiter_hint(raw: bytes, delimiter: str, encoding: str) -> str:
    """Return what to do where a header has one column that contains another separator; else nothing.

    Examples
    --------
    >>> delimiter_hint(b"x;z;y", ",", "utf-8")
    'the header has one column that contains ";": set delimiter: ";" next to path, or --delimiter of predict'

    """
    try:
        text = raw.decode(encoding).rstrip("\r\n")
    except UnicodeDecodeError:
        return ""
    other = next((json.dumps(one) for one in ";\t|," if _separates(one, text)), None)
    # With a zero or a carriage return it is the encoding, or the line ends, that are others.
    if other is None or delimiter in text or "\0" in text or "\r" in text:
        return ""
    how = f"set delimiter: {other} next to path, or --delimiter of predict"
    return f"the header has one column that contains {other}: {how}"


def _separates(delimiter: str, text: str) -> bool:
    """Whether a delimiter makes several fields of a text, and is not only within quotes."""
    try:
        return len(split_fields(text, delimiter)) > 1
    except UndecodableError:
        return False


def header_columns(
    raw: bytes,
    delimiter: str,
    encoding: str,
    target: Target,
    rules: ColumnRules,
    target_required: bool = True,
    passed: Collection[str] = (),
) -> list[str]:
    """Return the names of the columns; one that is no input, target or column to pass may come twice.

    `raw` is the first line of a file, and `passed` are the columns that pass through to the lines. With
    `target_required`, there must be the column of the target, and every column that is left out.

    Raises
    ------
    UnusableHeaderError
        Where the columns cannot be used.

    Examples
    --------
    >>> from streamkernel.connectors.columns.settings import InputSettings
    >>> header_columns(b"a,y", ",", "utf-8", "y", ColumnRules(InputSettings(), 256))
    ['a', 'y']

    """
    try:
        columns = list(map(nfc, split_fields(raw.decode(encoding), delimiter)))
    except UnicodeDecodeError:
        raise UnusableHeaderError(
            f"the header is not {encoding}: set the encoding, such as cp1252, or convert UTF-16 by iconv"
        ) from None
    except UndecodableError as error:
        raise UnusableHeaderError(f"the header cannot be read: {error}") from None
    if b"\r" in raw.rstrip(b"\r\n") and b'"' not in raw:
        raise UnusableHeaderError(
            "its lines end in carriage returns alone: convert it, for example with tr '\\r' '\\n'"
        )
    if not raw.strip():
        raise UnusableHeaderError("the first line is empty: the column names are expected there")
    named = columns[: n_named(columns)]
    if not named:
        raise UnusableHeaderError("no column has a name: write their names into the first line")
    targets = names_of(target)
    needed = {name for name in named if name in targets or name in passed or rules.column(name) is not None}
    double = [name for name, times in Counter(named).items() if times > 1 and name in needed]
    if double:
        raise UnusableHeaderError(
            f"column names must differ, the header repeats {listed(double)}: rename them in the file, or list them "
            "in inputs.exclude if nothing needs them"
        )
    for wanted, use in ((targets if target_required else (), "for the target"), (passed, "to pass through")):
        missing = next((name for name in wanted if name not in columns), None)
        if missing is not None:
            has = f"the header has {listed(columns)}{hint(missing, columns)}"
            raise UnusableHeaderError(f"there is no column {shown(missing)} {use}, {has}")
    # A file to predict often lacks what no model learns from: labels and ids.
    unknown = rules.find_unknown(columns, all_excluded=target_required)
    if unknown is not None:
        raise UnusableHeaderError(f"{unknown}; the header has {listed(columns)}")
    longest = max(columns, key=len)
    if len(longest) > rules.max_string:
        raise UnusableHeaderError(
            f"the column name {longest[:20]!r}... of {len(longest):,} characters is longer than max_string "
            f"({rules.max_string}): shorten it, or raise limits.max_string"
        )
    return columns
