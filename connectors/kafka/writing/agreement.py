"""Says in which way the marker in the broker and the mark in a checkpoint disagree."""

from __future__ import annotations

from streamkernel.connectors.kafka.writing.producer import Marker

__all__ = ["disagreement"]


def disagreement(marker: Marker | None, known: Marker | None, transactional_id: str, n_lines: int) -> tuple[str, str]:
    """Return how they disagree, and what to do, as two phrases.

    Parameters
    ----------
    marker
        The marker that the broker has.
    known
        The marker that the checkpoint expects; None where there is no checkpoint.
    transactional_id
        The name of the transactions.
    n_lines
        How many lines of the checkpoint are in doubt.

    Examples
    --------
    >>> disagreement(Marker(9, "me"), Marker(7, "me"), "shop", 0)[0]
    'the topic has the lines of transaction 9, and the checkpoint ends with 7'

    """
    if marker is None:
        return (
            f"the broker has forgotten whether the last {n_lines:,} lines of the checkpoint were committed "
            "(offsets.retention.minutes)",
            "set existing: append for this output, which may write them a second time",
        )
    if known is None or marker.writer != known.writer:
        return (
            f"the topic has lines of transactional_id {transactional_id}, and no checkpoint says which",
            "restore their checkpoint directory, name another topic, or set existing: append for this output, which "
            "writes all lines again",
        )
    return (
        f"the topic has the lines of transaction {marker.number:,}, and the checkpoint ends with {known.number:,}",
        "restore the newest checkpoint, name another topic, or set existing: append for this output, which writes the "
        "lines after the checkpoint again",
    )
