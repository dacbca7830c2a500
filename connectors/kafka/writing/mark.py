"""What a checkpoint keeps of an output topic, what the broker keeps, and how a restart compares the two."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter, lt
from typing import Any, Literal, NamedTuple, TypeAlias

from streamkernel.connectors.kafka.writing.line import Line, pack, unpack
from streamkernel.connectors.ports import Position, SinkError

__all__ = ["Answer", "LastLines", "Marker", "OutputMark", "compare", "disagreement"]

Answer: TypeAlias = Literal["agreed", "committed", "older", "other"]
"""The mark holds; it holds, and its lines are in the topic; an older mark; a mark of other lines."""

# A broker takes 4096 bytes of metadata with an offset.
_MOST_CHARACTERS = 3500


class LastLines:
    """The offset of the last line of each partition of a source; a run from an older checkpoint skips lines up to it.

    It is known for topics and journals only: the name of a place in a file changes as the file grows. Nor is it known
    once a line had a lower offset than one before it, as a replayed dead letter may have.

    Parameters
    ----------
    offsets
        By stream and partition; None: not known.

    Examples
    --------
    >>> last = LastLines({}).after([Position("cluster/clicks/1", 0, 7), Position("cluster/clicks/1", 0, 9)])
    >>> last.to_text()
    '[["cluster/clicks/1",0,9]]'
    >>> again = LastLines.from_text(last.to_text())
    >>> again.skips(Position("cluster/clicks/1", 0, 8)), again.skips(Position("cluster/clicks/1", 0, 10))
    (True, False)
    >>> last.after([Position("cluster/clicks/1", 0, 3)]).to_text()
    ''

    """

    def __init__(self, offsets: Mapping[tuple[str, int], int] | None) -> None:
        self._offsets = None if offsets is None else dict(offsets)

    @classmethod
    def from_text(cls, text: str) -> LastLines:
        """Read what `to_text` returned; raises `ValueError` or `TypeError` for another text."""
        if not text:
            return cls(None)
        return cls({(str(stream), int(partition)): int(offset) for stream, partition, offset in json.loads(text)})

    def __bool__(self) -> bool:
        """Whether any is known."""
        return bool(self._offsets)

    def to_text(self) -> str:
        """Return the offsets as JSON; empty if they are not known, or too many."""
        if self._offsets is None:
            return ""
        text = json.dumps([[*key, offset] for key, offset in sorted(self._offsets.items())], separators=(",", ":"))
        return text if len(text) <= _MOST_CHARACTERS else ""

    def after(self, positions: Iterable[Position]) -> LastLines:
        """Return the offsets once lines at these positions are added."""
        if self._offsets is None:
            return self
        offsets = dict(self._offsets)
        for (stream, partition), some in groupby(positions, itemgetter(0, 1)):
            known = [offsets.get((stream, partition), -1), *(position.offset for position in some)]
            if "/" not in stream or not all(map(lt, known, known[1:])):
                return LastLines(None)
            offsets[stream, partition] = known[-1]
        return LastLines(offsets)

    def skips(self, position: Position) -> bool:
        """Return whether a line is up to the last one of its partition; the first line after it ends the skipping."""
        last = (self._offsets or {}).get(position[:2])
        if self._offsets is None or last is None:
            return False
        if position.offset > last:
            del self._offsets[position[:2]]
        return position.offset <= last


@dataclass(frozen=True)
class OutputMark:
    """What a run must know to continue an output topic.

    Attributes
    ----------
    stream
        The topic: ``"cluster/topic/number"``.
    writer
        The name that signs the lines.
    transactional_id
        The one of the configuration.
    committed
        The number of the last transaction that is surely committed.
    number
        The number of the transaction that holds the `lines`; `committed` if there are none.
    lines
        The lines since: the broker knows whether they are in the topic.
    skipped
        The last lines up to which those of an older checkpoint are skipped, as `LastLines` writes them.

    """

    stream: str
    writer: str
    transactional_id: str | None = None
    committed: int = 0
    number: int = 0
    lines: list[Line] = field(default_factory=list)
    skipped: str = "[]"

    def to_json(self) -> dict[str, Any]:
        """Return the mark as a checkpoint has it.

        Examples
        --------
        >>> mark = OutputMark("c/t/n", "me", "id", 6, 7, [])
        >>> OutputMark.from_json(mark.to_json()) == mark
        True

        """
        return {**self.__dict__, "lines": pack(self.lines)}

    @classmethod
    def from_json(cls, mark: Any) -> OutputMark:
        """Return the mark that `to_json` returned; raises `SinkError` for anything else."""
        try:
            identity = mark["transactional_id"]
            made = cls(
                str(mark["stream"]),
                str(mark["writer"]),
                None if identity is None else str(identity),
                int(mark["committed"]),
                int(mark["number"]),
                unpack(mark["lines"]),
                LastLines.from_text(mark["skipped"]).to_text(),
            )
            if not 0 <= made.committed <= made.number:
                raise ValueError
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            raise SinkError("its mark in the checkpoint is not from a topic: start over with --fresh") from None
        return made


class Marker(NamedTuple):
    """What the broker keeps: the number of the last committed transaction, its writer, and its last lines as text."""

    number: int
    writer: str
    last: str = ""


def compare(marker: Marker | None, mark: OutputMark, same_topic: bool, renamed: bool) -> Answer:
    """Return what the marker in the broker says of a mark.

    Parameters
    ----------
    marker
        The marker that the broker has.
    mark
        The lines of the writer: those of the checkpoint, or since.
    same_topic
        Whether the topic is the one of the checkpoint.
    renamed
        Whether the writer had another transactional id at the checkpoint.

    Examples
    --------
    >>> mark = OutputMark("c/t/1", "me", "id", 6, 7, [...])
    >>> [compare(Marker(number, "me", "[]"), mark, same_topic=True, renamed=False) for number in (6, 7, 9)]
    ['agreed', 'committed', 'older']
    >>> compare(Marker(7, "you"), mark, same_topic=True, renamed=False)
    'other'

    """
    number = None if marker is None or marker.writer != mark.writer else marker.number
    if mark.lines and number == mark.number:
        return "committed"
    if number == mark.committed or (renamed and number is not None and number < mark.committed):
        return "agreed"
    if marker is not None and number is not None and number > mark.number and same_topic and marker.last:
        return "older"
    nothing = marker is None or marker.number == 0
    if (nothing and not mark.lines) or (marker is None and not same_topic):
        return "agreed"
    return "other"


def disagreement(marker: Marker | None, mark: OutputMark, transactional_id: str, resumed: bool) -> tuple[str, str]:
    """Return how marker and mark disagree, and what to do, as two phrases.

    Examples
    --------
    >>> disagreement(Marker(9, "me"), OutputMark("c/t/1", "me", "shop", 7, 7), "shop", resumed=True)[0]
    'the topic has the lines of transaction 9, and the checkpoint ends with 7'

    """
    if marker is None:
        return (
            f"the broker has forgotten whether the last {len(mark.lines):,} lines of the checkpoint were committed "
            "(offsets.retention.minutes)",
            "set existing: append for this output, which may write them a second time",
        )
    if not resumed or marker.writer != mark.writer:
        return (
            f"the topic has lines of transactional_id {transactional_id}, and no checkpoint says which",
            "restore their checkpoint directory, name another topic, or set existing: append for this output, which "
            "writes all lines again",
        )
    return (
        f"the topic has the lines of transaction {marker.number:,}, and the checkpoint ends with {mark.number:,}",
        "restore the newest checkpoint, name another topic, or set existing: append for this output, which writes the "
        "lines after the checkpoint again",
    )
