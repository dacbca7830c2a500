"""The lines of a journal: a record as it was given, and the id by which a repeat of it is known."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import orjson

__all__ = ["JournalEntry", "digest_of", "parse_line", "to_line"]

_WITH_ID, _ID_ENDS, _WITHOUT_ID = b'{"id":"', b'","record":', b'{"record":'


class JournalEntry(NamedTuple):
    """A record for a journal.

    Attributes
    ----------
    record
        A JSON object in UTF-8.
    id
        By which a repeat of it is known; None: no other record is a repeat of it.
    exact
        Whether a repeat must be the same record, byte by byte: another one of its id is refused.

    """

    record: bytes
    id: str | None = None
    exact: bool = False


def to_line(entry: JournalEntry) -> bytes:
    """Return an entry as a line, with its end.

    Examples
    --------
    >>> line = to_line(JournalEntry(b'{"a":\\n1}', 'order "7"'))
    >>> line
    b'{"id":"order \\\\"7\\\\"","record":{"a": 1}}\\n'
    >>> parse_line(line[:-1])
    JournalEntry(record=b'{"a": 1}', id='order "7"', exact=False)

    """
    record = _on_one_line(entry.record)
    if entry.id is None:
        return b"%s%s}\n" % (_WITHOUT_ID, record)
    return b'{"id":%s,"record":%s}\n' % (orjson.dumps(entry.id), record)


def digest_of(record: bytes) -> str:
    """Return what tells a record from any other, the same for the bytes that were given and those in a line.

    Examples
    --------
    >>> entry = JournalEntry(b'{"a":\\n1}', "seven")
    >>> parsed = parse_line(to_line(entry)[:-1])
    >>> digest_of(entry.record) == digest_of(parsed.record), digest_of(b'{"a": 2}') == digest_of(parsed.record)
    (True, False)

    """
    return hashlib.blake2b(_on_one_line(record), digest_size=16).hexdigest()


def _on_one_line(record: bytes) -> bytes:
    # In JSON, line ends stand between the tokens only, where a blank means the same.
    return record.replace(b"\n", b" ").replace(b"\r", b" ")


def parse_line(line: bytes) -> JournalEntry | None:
    """Return the entry of a line without its end, the record as it stands there; None for what is no such line."""
    if line[-1:] != b"}":
        return None
    if line.startswith(_WITHOUT_ID):
        return JournalEntry(line[len(_WITHOUT_ID) : -1])
    # Within the text of an id each quotation mark has a backslash before it: the first without one ends it.
    end = line.find(_ID_ENDS)
    if not line.startswith(_WITH_ID) or end < 0:
        return None
    try:
        name = orjson.loads(line[len(_WITH_ID) - 1 : end + 1])
    except orjson.JSONDecodeError:
        return None
    return JournalEntry(line[end + len(_ID_ENDS) : -1], name)
