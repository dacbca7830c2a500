"""Finds the lines that were written since a mark: those in the topic, and those that retention took from it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping

from streamkernel.connectors.kafka.consumer.topic import Bounds
from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.kafka.writing.topic_scan import FoundLine, TopicScan
from streamkernel.connectors.kafka.writing.written_lines import WrittenLines
from streamkernel.connectors.ports import ConnectorError

__all__ = ["written_since"]

_log = logging.getLogger(__name__)

_SEQUENCES = 2**31


def written_since(
    scan: TopicScan,
    mark: OutputMark,
    bounds: Mapping[int, Bounds],
    sequences: Mapping[int, int],
    cancelled: Callable[[], bool] = lambda: False,
    *,
    keys_repeat: bool = False,
    in_order: bool = True,
) -> WrittenLines:
    """Return the lines that are not to be written again by a run that goes on from a mark.

    Parameters
    ----------
    scan, mark, cancelled
        The topic, where to go on, and what ends the scan with `Unreachable` once it returns True.
    bounds
        Where each partition begins and ends, once nobody else writes under this name.
    sequences
        By partition, the number of the next line of the mark's producer, as far as the broker tells.
    keys_repeat
        Whether several lines may have one key, of which a compacted topic keeps the last: lines before the last one
        of their partition of the source count as written then, though they are gone.
    in_order
        Whether this run writes lines in the order of their records. A replay does not.

    Raises
    ------
    Unreachable
        Where no broker answers, or a transaction of this writer is open.
    ConnectorError
        Where the topic ends before the mark.

    """
    same = mark.stream == scan.stream
    if not same:
        _log.warning("kafka topic %s was deleted and created again: its earlier lines are gone", scan.name)
    starts = {one: _start(mark, one, there) if same else there.first for one, there in bounds.items()}
    ends = {partition: there.end for partition, there in bounds.items()}
    found = scan.lines(starts, ends, mark.writer, cancelled)
    passed = mark.passed | (_removed(scan, mark, starts, found, sequences) if same else {})
    if keys_repeat and same:
        passed |= _last_ones(found, passed)
    committed = [line.origin for line in found if line.committed]
    return WrittenLines([*WrittenLines.positions(mark.written), *committed], passed, in_order=in_order)


def _last_ones(found: list[FoundLine], passed: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """Return by partition of a source the last record of which a line is found: they are written in order."""
    last: dict[tuple[str, int], int] = {}
    for line in found:
        if line.committed:
            place, offset = line.origin[:2], line.origin.offset
            last[place] = max(offset, last.get(place, passed.get(place, offset)))
    return last


def _removed(
    scan: TopicScan,
    mark: OutputMark,
    starts: Mapping[int, int],
    found: list[FoundLine],
    sequences: Mapping[int, int],
) -> dict[tuple[str, int], int]:
    """Return by partition of a source the last record whose line counts as written, where retention took lines."""
    passed: dict[tuple[str, int], int] = {}
    written = _written(mark, sequences)
    seen = Counter(line.partition for line in found)
    for partition, first in starts.items():
        begin = mark.ends.get(partition, first)
        gone = written[partition] - seen[partition] if partition in written else None
        # What retention took may be the mark of a transaction, or of others.
        if begin == first or gone == 0:
            continue
        # They are written in order: all before the last one had theirs.
        for line in found:
            if line.partition == partition and line.committed:
                place, offset = line.origin[:2], line.origin.offset
                passed[place] = max(offset, passed.get(place, mark.passed.get(place, offset)))
        _log.warning(
            "kafka topic %s, partition %d: offsets %d to %d were removed since the checkpoint%s: their lines are "
            "written again, except before a later line of the same source partition",
            *(scan.name, partition, begin, first - 1, "" if gone is None else f", {gone:,} of our lines with them"),
        )
    return passed


def _written(mark: OutputMark, sequences: Mapping[int, int]) -> dict[int, int]:
    """Return by partition how many lines were written since the mark, where that is known."""
    return {
        partition: (number - mark.sequences[partition]) % _SEQUENCES
        for partition, number in sequences.items()
        if partition in mark.sequences
    }


def _start(mark: OutputMark, partition: int, there: Bounds) -> int:
    """Return the offset from which on lines of a partition may be that were written after the mark."""
    start = mark.ends.get(partition, there.first)
    if start > there.end:
        raise ConnectorError(
            f"partition {partition} ends at offset {there.end:,}, before offset {start:,} of the checkpoint: "
            "the brokers lost lines. Name another topic to continue, or start over with --fresh"
        )
    return max(start, there.first)
