"""Compares the marker in the broker with what a checkpoint says of the lines in a topic."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from streamkernel.connectors.kafka.writing.mark import OutputMark

__all__ = ["Answer", "Marker", "compare", "disagreement"]

Answer: TypeAlias = Literal["agreed", "committed", "older", "other"]
"""The mark holds; it holds, and its lines are in the topic; an older mark; a mark of other lines."""


class Marker(NamedTuple):
    """The number of the last committed transaction, the writer that committed it, and its last lines as text."""

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
