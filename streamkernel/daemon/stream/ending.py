"""The first records of a source, and its end: whether what it holds is what the configuration says."""

from __future__ import annotations

from collections.abc import Mapping

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.stream.processor import Processor

__all__ = ["FIRST", "TooManyDeadLettersError", "all_dead", "bad_start", "begins_well", "verify_ending"]

FIRST = 50
"""After this many dead letters and no usable record the start of a source is bad."""


def bad_start(processor: Processor) -> str | None:
    """Return what is wrong where the first 50 records, or late labels, or more of them are all dead letters."""
    for what, counts, n_taken in _accounts(processor):
        dead, skipped = counts["dead"], counts["skipped"]
        if dead >= FIRST and dead + skipped == n_taken:
            return f"the first {dead:,} {what} are all dead letters"
    return None


def begins_well(processor: Processor) -> bool:
    """Return whether a record was usable, and a late label where there are any: then no start is bad any more."""
    return all(counts["dead"] + counts["skipped"] < n_taken for _, counts, n_taken in _accounts(processor))


def all_dead(processor: Processor) -> bool:
    """Return whether all records so far, or all late labels, are dead letters or blank, and at least one is dead."""
    return any(
        counts["dead"] and counts["dead"] + counts["skipped"] == n_taken for _, counts, n_taken in _accounts(processor)
    )


class TooManyDeadLettersError(DaemonError):
    """Too many records are unusable: the source does not match the configuration.

    Its message tells what is wrong with one of them if `has_example` says so.
    """

    def __init__(self, message: str, *, has_example: bool = False) -> None:
        super().__init__(message)
        self.has_example = has_example


def verify_ending(processor: Processor) -> None:
    """Raise where a source that was read to its end had more dead letters than is borne.

    While it is read, `DeadLetterRate` looks at a whole window of records. Here the records of a source that is shorter
    than that count, and those of one that held nothing else than dead letters and empty lines.

    Raises
    ------
    TooManyDeadLettersError
        Naming how many of how many records, or late labels.

    """
    rate = processor.rate
    for what, counts, n_taken in _accounts(processor):
        dead, skipped = counts["dead"], counts["skipped"]
        if rate.max_rate < 1 and dead and dead + skipped == n_taken:
            raise TooManyDeadLettersError(
                f"none of the {n_taken - skipped:,} {what} could be used: the source does not match the configuration"
            )
        if n_taken < rate.window and dead > rate.max_rate * n_taken:
            raise TooManyDeadLettersError(
                f"{dead:,} of the {n_taken:,} {what} were dead letters, more than dead_letters.max_rate "
                f"({rate.max_rate:.0%}) allows: the source does not match the configuration"
            )


def _accounts(processor: Processor) -> list[tuple[str, Mapping[str, int], int]]:
    """Return what was taken, its counts and its number: records, and late labels where there are any."""
    records, labels = processor.counts.to_json(), processor.stage.to_json()
    found: list[tuple[str, Mapping[str, int], int]] = [("records", records, records["consumed"])]
    if labels:
        found.append(("labels", labels, labels["taken"]))
    return found
