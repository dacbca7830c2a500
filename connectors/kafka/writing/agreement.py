"""Compares the marker in the broker with what a checkpoint says of the lines in a topic."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from streamkernel.connectors.kafka.writing.producer import Marker

__all__ = ["Claim", "disagreement"]

Answer: TypeAlias = Literal["agreed", "committed", "older", "other"]
"""Of a claim: true; true, and its doubtful lines are in the topic; true of an earlier time; not true."""


class Claim(NamedTuple):
    """What a checkpoint says of the lines of its writer in a topic.

    Attributes
    ----------
    writer
        Who wrote them.
    committed, number
        The last transaction that is surely committed, and the last one there is.
    doubtful
        Whether only the broker knows if the last one is committed.
    renamed
        Whether the writer had another transactional id at the checkpoint.
    resumed
        Whether there is a checkpoint.

    """

    writer: str
    committed: int
    number: int
    doubtful: bool
    renamed: bool
    resumed: bool

    def answer(self, marker: Marker | None, same_topic: bool) -> Answer:
        """Return what the marker in the broker says of the claim.

        Examples
        --------
        >>> claim = Claim("me", 6, 7, doubtful=True, renamed=False, resumed=True)
        >>> [claim.answer(Marker(number, "me", "[]"), same_topic=True) for number in (6, 7, 9)]
        ['agreed', 'committed', 'older']
        >>> claim.answer(Marker(7, "you"), same_topic=True)
        'other'

        """
        number = None if marker is None or marker.writer != self.writer else marker.number
        if self.doubtful and number == self.number:
            return "committed"
        if number == self.committed or (self.renamed and number is not None and number < self.committed):
            return "agreed"
        if marker is not None and number is not None and number > self.number and same_topic and marker.last:
            return "older"
        nothing = marker is None or marker.number == 0
        if (nothing and not self.doubtful) or (marker is None and not same_topic):
            return "agreed"
        return "other"


def disagreement(marker: Marker | None, claim: Claim, transactional_id: str, n_lines: int) -> tuple[str, str]:
    """Return how they disagree, and what to do, as two phrases.

    Parameters
    ----------
    marker
        The marker that the broker has.
    claim
        What the checkpoint says.
    transactional_id
        The name of the transactions.
    n_lines
        How many lines of the checkpoint are in doubt.

    Examples
    --------
    >>> disagreement(Marker(9, "me"), Claim("me", 7, 7, False, False, True), "shop", 0)[0]
    'the topic has the lines of transaction 9, and the checkpoint ends with 7'

    """
    if marker is None:
        return (
            f"the broker has forgotten whether the last {n_lines:,} lines of the checkpoint were committed "
            "(offsets.retention.minutes)",
            "set existing: append for this output, which may write them a second time",
        )
    if not claim.resumed or marker.writer != claim.writer:
        return (
            f"the topic has lines of transactional_id {transactional_id}, and no checkpoint says which",
            "restore their checkpoint directory, name another topic, or set existing: append for this output, which "
            "writes all lines again",
        )
    return (
        f"the topic has the lines of transaction {marker.number:,}, and the checkpoint ends with {claim.number:,}",
        "restore the newest checkpoint, name another topic, or set existing: append for this output, which writes the "
        "lines after the checkpoint again",
    )
