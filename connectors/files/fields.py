"""Fields of CSV: the one place that splits text into them by the csv module, and the one that writes them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamkernel.connectors.decode import UndecodableError

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["counted", "csv_rows", "csv_text", "n_lines_of_record", "n_named", "split_fields"]

# The csv module refuses fields of more than 131,072 characters by default. Here `max_record_bytes` is the limit. The
# csv module has one limit for the process, so it is raised once: to raise and restore it would be a race of threads.
csv.field_size_limit(2**31 - 1)


def csv_rows(texts: Iterable[str], delimiter: str = ",", *, strict: bool = True) -> Reader:
    """Return the rows of lines of text, as the csv module reads them."""
    return csv.reader(texts, delimiter=delimiter, strict=strict)


def split_fields(text: str, delimiter: str) -> list[str]:
    """Split a record as the rules of quoting say; raise UndecodableError where its quotes are not as CSV has them.

    Examples
    --------
    >>> split_fields('1,"a, b",', ",")
    ['1', 'a, b', '']

    """
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv_rows([text], delimiter))
    except csv.Error as error:
        # Python's own sentence gives advice on a call of its own.
        why = "a carriage return outside of quotes" if "\r" in text else str(error)
        raise UndecodableError("csv_width", f"the quotes are not valid CSV: {why}", "quotes") from None


def n_lines_of_record(lines: Iterable[str], delimiter: str = ",") -> int:
    """Return how many of these lines the first record has; 0 where a quote is open at their end.

    Where its quotes are not as CSV has them, the first line is a record alone.

    Examples
    --------
    >>> [n_lines_of_record(lines) for lines in (['1,"a', 'b",2', "3"], ['"a', "b"], ['"a', '"b'])]
    [2, 0, 1]

    """
    ended = False

    def until_the_end() -> Iterator[str]:
        nonlocal ended
        yield from lines
        ended = True

    rows = csv_rows(until_the_end(), delimiter)
    try:
        next(rows)
    except csv.Error:
        return 0 if ended else 1
    return rows.line_num


def counted(fields: Sequence[str]) -> str:
    """Return how many fields there are, in words.

    Examples
    --------
    >>> counted(["a"]), counted(["a", "b"])
    ('1 field', '2 fields')

    """
    return "1 field" if len(fields) == 1 else f"{len(fields)} fields"


def n_named(columns: Sequence[str]) -> int:
    """Return how many columns there are up to the last one that has a name: spreadsheets write empty ones after it.

    Examples
    --------
    >>> n_named(["a", "", "b", "", ""])
    3

    """
    return max((index for index, name in enumerate(columns, 1) if name), default=0)


class _Lines(list[str]):
    write = list.append


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as lines of CSV that end in line feeds, of which each reader of CSV makes the same fields again.

    Examples
    --------
    >>> csv_text([["a", "b, c", None], [0.5, "d", 1]])
    'a,"b, c",\\n0.5,d,1\\n'

    """
    lines = _Lines()
    # Before Python 3.13 the csv module leaves a carriage return without quotes, and reads a line end there, unless it
    # is among the line ends that it writes.
    csv.writer(lines, lineterminator="\r\n").writerows(rows)
    return "".join([f"{line[:-2]}\n" for line in lines])
